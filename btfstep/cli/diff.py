# SPDX-License-Identifier: GPL-2.0-only
"""``btfstep diff``: the types that two BTFs do not have in common."""

from __future__ import annotations

import sys

from btfstep.cli.getopt import CommandLineError, option
from btfstep.cli.inputs import BASE, FEATURES, HELP, JOBS, Input, arguments, help_text, write
from btfstep.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from btfstep.btf.compare import Comparison, Detail
    from btfstep.btf.spelling import Field

FORMAT = option("format", "f", "FORMAT", "text (the default) or json")
QUIET = option("quiet", "q", help="print nothing, and only return the status")
OPTIONS = (FORMAT, QUIET, BASE, JOBS, FEATURES, HELP)
USAGE = "btfstep diff A B [OPTION...]"
ABOUT = """\
Lists the types, functions and variables that B has and A has not, the other way round, and those that differ. Type ids
and order do not count. A and B are what INPUT is for 'btfstep vmlinux-h'. -B given twice is A's base, then B's.
Exit status: 0 if there is no difference, 1 if there is, 2 if something is wrong.
"""

DIFFERENT = 1
TROUBLE = 2


def run(argv: Sequence[str]) -> int:
    """Read a command line and do what it says. Return the exit status; raise what stopped it, with status 2."""
    try:
        return _run(argv)
    except Exception as error:
        error.exit_status = TROUBLE  # type: ignore[attr-defined]  # 1 would be an answer
        raise


def _run(argv: Sequence[str]) -> int:
    form: str | None = None
    quiet = False
    sources: list[Input] = []
    bases: list[str] = []
    common = Input()
    for argument in arguments(argv, OPTIONS):
        value = argument.value or ""
        if argument.option is None:
            sources.append(Input())
            sources[-1].path = value
        elif argument.option is BASE:
            bases.append(value)
        elif common.take(argument):
            pass
        elif argument.option is HELP:
            sys.stdout.write(help_text(USAGE, ABOUT, OPTIONS))
            sys.stdout.flush()
            return 0
        elif argument.option is QUIET:
            quiet = True
        elif argument.option is FORMAT:
            if value not in ("text", "json"):
                raise UsageError(f"unknown format '{value}': there are text and json")
            form = value
    if len(sources) != 2:
        raise CommandLineError(f"two inputs are compared, and {len(sources)} are given")
    if len(bases) > 2:
        raise CommandLineError("-B is given once for both inputs, or once for each")
    for source, base in zip(sources, bases * 2 if len(bases) == 1 else bases, strict=False):
        source.base = base
    for source in sources:
        source.jobs, source.feature_lists = common.jobs, common.feature_lists
    return _compare(sources, quiet, form)


def _compare(sources: Sequence[Input], quiet: bool, form: str | None) -> int:
    from btfstep.btf.compare import Comparison

    old, new = (source.open().reader for source in sources)
    comparison = Comparison(old, new)
    if not quiet:
        if form == "json":
            write(_as_json(comparison, sources), None)
        elif comparison:
            write("".join(f"{line}\n" for line in _as_text(comparison)).encode("utf-8", "surrogateescape"), None)
    return DIFFERENT if comparison else 0


def _as_json(comparison: Comparison, sources: Sequence[Input]) -> bytes:
    import json

    old, new = comparison.old, comparison.new
    changed = []
    for old_id, new_id in comparison.changed:
        entry = comparison.describe(new, new_id)
        changes = [
            {"what": detail.what, "name": detail.name, "old": _plain(detail.old), "new": _plain(detail.new)}
            for detail in comparison.details(old_id, new_id)
        ]
        changed.append({"kind": entry["kind"], "name": entry["name"], "changes": changes})
    report = {
        "old": sources[0].path,
        "new": sources[1].path,
        "added": [comparison.describe(new, type_id) for type_id in comparison.added],
        "removed": [comparison.describe(old, type_id) for type_id in comparison.removed],
        "changed": changed,
    }
    return (json.dumps(report, indent=1) + "\n").encode()


def _plain(value: Any) -> Any:
    """What JSON has for one side of a change."""
    if not isinstance(value, tuple):
        return value
    if len(value) == 2:
        return {"offset": value[0], "size": value[1]}
    _, spelled, bit_offset, bit_size = value
    return {"type": spelled, "bit_offset": bit_offset, "bit_size": bit_size}


def _as_text(comparison: Comparison) -> Iterator[str]:
    for type_id in comparison.removed:
        yield f"removed  {_title(comparison.describe(comparison.old, type_id))}"
    for type_id in comparison.added:
        yield f"added    {_title(comparison.describe(comparison.new, type_id))}"
    for old_id, new_id in comparison.changed:
        entry = comparison.describe(comparison.new, new_id)
        details = comparison.details(old_id, new_id)
        sizes = [f": {detail.old} -> {detail.new} bytes" for detail in details if detail.what == "size"]
        yield f"changed  {entry['kind']} {entry['name']}{''.join(sizes)}"
        yield from (f"           {line}" for line in _lines(details))
    yield f"{len(comparison.added)} added, {len(comparison.removed)} removed, {len(comparison.changed)} changed"


def _title(entry: dict[str, Any]) -> str:
    title = f"{entry['kind']} {entry['name']}"
    if "of" in entry:
        return f"{title} on {entry['of']}"
    if "type" in entry:
        return f"{title}: {entry['type']}"
    return f"{title}, {entry['size']} bytes" if "size" in entry else title


def _lines(details: Sequence[Detail]) -> Iterator[str]:
    """A line for each change, but one for all members in a row that moved by the same distance."""
    run: list[Detail] = []
    for detail in details:
        if run and _distance(detail) != _distance(run[0]):
            yield _moved(run)
            run = []
        if _distance(detail):
            run.append(detail)
        elif detail.what != "size":
            yield _line(detail)
    if run:
        yield _moved(run)


def _distance(detail: Detail) -> int:
    """By how many bits a member moved that did nothing else, or by how many bytes a variable; 0 for all others."""
    old, new = detail.old, detail.new
    if old is None or new is None:
        return 0
    if detail.what == "variable":
        return int(new[0] - old[0]) if old[1] == new[1] else 0
    if detail.what != "member" or (old.type, old.bit_size) != (new.type, new.bit_size):
        return 0
    return int(new.bit_offset - old.bit_offset)


def _moved(details: Sequence[Detail]) -> str:
    first, last, distance = details[0], details[-1], _distance(details[0])
    unit = "bytes"
    if first.what == "member":
        distance, unit = (distance // 8, unit) if distance % 8 == 0 else (distance, "bits")
    if len(details) == 1:
        return f"{first.name} moved by {distance:+} {unit}, {_where(first.old)} -> {_where(first.new)}"
    return f"{first.name} ... {last.name} ({len(details)}) moved by {distance:+} {unit}"


def _line(detail: Detail) -> str:
    name, old, new = detail.name, detail.old, detail.new
    if detail.what == "other":
        return "differs inside of types without a name"
    if detail.what == "member":
        if old is None or new is None:
            return f"{'+' if old is None else '-'} {_declared(old or new)} at {_where(old or new)}"
        parts = [f"{old.type} -> {new.type}"] if old.type != new.type else []
        parts += [f"{old.bit_size or 'all'} -> {new.bit_size or 'all'} bits"] if old.bit_size != new.bit_size else []
        parts += [f"{_where(old)} -> {_where(new)}"] if old.bit_offset != new.bit_offset else []
        return f"{name}: {', '.join(parts)}"
    if detail.what == "variable":
        if old is None or new is None:
            return f"{'+' if old is None else '-'} {name} at {_where(old or new)}"
        moved = "" if old[0] == new[0] else f", {old[0]} -> {new[0]}"
        return f"{name}: {old[1]} -> {new[1]} bytes{moved}"
    if detail.what == "value":
        if old is None or new is None:
            return f"{'+' if old is None else '-'} {name} = {new if old is None else old}"
        return f"{name}: {old} -> {new}"
    return f"{detail.what}: {old} -> {new}"


def _declared(field: Field) -> str:
    space = "" if field.type.endswith("*") else " "
    return f"{field.type}{space}{field.name}" + (f":{field.bit_size}" if field.bit_size else "")


def _where(place: Any) -> str:
    """The place of a member or variable, in bytes and, where there are some, bits."""
    if len(place) == 2:
        return str(place[0])
    whole, bits = divmod(place.bit_offset, 8)
    return f"{whole}.{bits}" if bits or place.bit_size else str(whole)
