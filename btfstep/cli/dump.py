# SPDX-License-Identifier: GPL-2.0-only
"""``btfstep dump``: the types of a file, as text, JSON, C, or the BTF itself."""

from __future__ import annotations

import sys

from btfstep.cli.getopt import option
from btfstep.cli.inputs import (
    BASE,
    EXPLAIN,
    FEATURES,
    HELP,
    JOBS,
    OUTPUT,
    ROOT_ID,
    UNSORTED,
    Input,
    add_id,
    arguments,
    help_text,
    write,
)
from btfstep.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from btfstep.btf.view import Btf

FORMAT = option("format", "f", "FORMAT", "raw (the default), c, json, or btf: the BTF itself, for other tools")
PRETTY = option("pretty", "p", help="JSON with line breaks")
OPTIONS = (FORMAT, PRETTY, OUTPUT, BASE, ROOT_ID, UNSORTED, EXPLAIN, JOBS, FEATURES, HELP)
BINARY = "btf"
FORMATS = ("raw", "c", "json", BINARY)
USAGE = "btfstep dump [INPUT] [--format raw|c|json|btf] [OPTION...]"
ABOUT = "Prints the types of INPUT, which is what it is for 'btfstep vmlinux-h', as bpftool does, or writes its BTF.\n"


def run(argv: Sequence[str]) -> int:
    """Read a command line and do what it says. Return the exit status; raise what stopped it."""
    source = Input()
    output: str | None = None
    form: str | None = None
    ids: list[int] = []
    pretty = explain = False
    sort = True
    for argument in arguments(argv, OPTIONS):
        if source.take(argument):
            continue
        value = argument.value or ""
        if argument.option is HELP:
            sys.stdout.write(help_text(USAGE, ABOUT, OPTIONS))
            sys.stdout.flush()
            return 0
        if argument.option is FORMAT:
            if value not in FORMATS:
                raise UsageError(f"unknown format '{value}': there are {', '.join(FORMATS)}")
            form = value
        elif argument.option is OUTPUT:
            output = value
        elif argument.option is ROOT_ID:
            add_id(ids, value)
        elif argument.option is EXPLAIN:
            explain = True
        elif argument.option is PRETTY:
            pretty = True
        elif argument.option is UNSORTED:
            sort = False
    if pretty and form not in (None, "json"):
        raise UsageError(f"--pretty is for JSON, not for the format {form}")
    about = _about(form) if explain else None
    if form == BINARY:
        if ids or not sort:
            raise UsageError("--root-id and --unsorted are for text, not for the format btf, which is always whole")
        write(source.binary(), output, about)
        return 0
    write(dump(source.open(), form or ("json" if pretty else "raw"), ids, pretty=pretty, sort=sort), output, about)
    return 0


def _about(form: str | None) -> Callable[[bytes, bytes], str]:
    """What tells one output of this format from another."""
    from btfstep.cli import explain

    if form == BINARY:
        return explain.btf_difference
    return explain.header_difference if form == "c" else explain.text_difference


def dump(btf: Btf, form: str, ids: Sequence[int], *, pretty: bool, sort: bool) -> bytes:
    """The text in one of FORMATS but the last. Raises as the methods of Btf."""
    if form == "c":
        return btf.header(sort=sort, root_ids=ids)
    if form == "json":
        return btf.json(ids, pretty=pretty)
    return btf.raw(ids)
