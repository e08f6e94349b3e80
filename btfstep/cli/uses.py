# SPDX-License-Identifier: GPL-2.0-only
"""``btfstep uses``: what a BPF object uses of a kernel, and a stamp that changes when that does."""

from __future__ import annotations

import sys

from btfstep.cli.getopt import CommandLineError, option
from btfstep.cli.inputs import BASE, EXPLAIN, FEATURES, HELP, JOBS, Input, arguments, help_text, write
from btfstep.errors import UsageError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from btfstep.bpf.uses import Use

VMLINUX = option("vmlinux", metavar="INPUT", help="the kernel: ELF or raw BTF (default: the running one)")
STAMP = option("stamp", metavar="FILE", help="write digests of the definitions to FILE, unless it holds the same")
DEPFILE = option("depfile", metavar="FILE", help="write what was read to FILE, for make and Ninja")
TYPE = option("type", metavar="NAME[,NAME...]", help="count these types too, which leave no trace in PROG")
SOURCES = option(
    "sources", metavar="DEPFILE", help="count what the files that DEPFILE lists name, and no other constants"
)
ALL = option("all", help="count every type that PROG defines, as if it had no CO-RE records")
CORE = option("core", help="count fields by CO-RE records only, even if PROG has none of these")
MISSING = option("missing-ok", help="a PROG that is not there (yet) uses nothing, and leaves the stamp as it is")
FORMAT = option("format", "f", "FORMAT", "of the list: text (the default) or json")
OPTIONS = (VMLINUX, STAMP, BASE, SOURCES, TYPE, ALL, CORE, MISSING, FORMAT, DEPFILE, EXPLAIN, JOBS, FEATURES, HELP)
USAGE = "btfstep uses PROG.bpf.o... [--vmlinux INPUT] [--stamp FILE] [OPTION...]"
ABOUT = """\
Lists what the BPF objects use of the kernel's BTF: the types of their CO-RE records and externs, what they attach to,
and all that those hold by value. A stamp has a digest of each, and changes only when one of these definitions does.
INPUT is what it is for 'btfstep vmlinux-h'.
"""


def run(argv: Sequence[str]) -> int:
    """Read a command line and do what it says. Return the exit status; raise what stopped it."""
    source = Input()
    programs: list[str] = []
    names: list[str] = []
    sources: list[str] = []
    stamp: str | None = None
    depfile: str | None = None
    form: str | None = None
    about: Callable[[bytes, bytes], str] | None = None
    everything: bool | None = None
    missing_ok = False
    for argument in arguments(argv, OPTIONS):
        value = argument.value or ""
        if argument.option is None:
            programs.append(value)
        elif source.take(argument):
            pass
        elif argument.option is HELP:
            sys.stdout.write(help_text(USAGE, ABOUT, OPTIONS))
            sys.stdout.flush()
            return 0
        elif argument.option is VMLINUX:
            source.path = value
        elif argument.option is STAMP:
            stamp = value
        elif argument.option is DEPFILE:
            depfile = value
        elif argument.option is EXPLAIN:
            from btfstep.cli.explain import stamp_difference as about
        elif argument.option is FORMAT:
            if value not in ("text", "json"):
                raise UsageError(f"unknown format '{value}': there are text and json")
            form = value
        elif argument.option is SOURCES:
            sources.append(value)
        elif argument.option is TYPE:
            names += value.split(",")
        elif argument.option in (ALL, CORE):
            if everything not in (None, argument.option is ALL):
                raise UsageError("--all and --core exclude each other")
            everything = argument.option is ALL
        elif argument.option is MISSING:
            missing_ok = True
    if not programs:
        raise CommandLineError("no BPF object given")
    if depfile is not None and stamp is None:
        raise UsageError("--depfile needs --stamp FILE, which it is about")
    if form is not None and stamp is not None:
        raise UsageError("--format is for the list, and a stamp has a form of its own; leave one of them out")
    if about is not None and stamp is None:
        raise UsageError("--explain needs --stamp FILE, which it is about; without one, the list has the reasons")
    if missing_ok and not _all_there(programs):
        return _not_yet(stamp, explain=about is not None)
    if missing_ok and not _all_there(sources):
        sources = []  # then all that the object may use counts, and the rule makes it and them anew
    rule: str | None = None
    if depfile is not None and stamp is not None:
        from btfstep.build.depfile import depfile_text

        rule = depfile_text(stamp, [*programs, *sources, *source.files])
    used = _uses(programs, source, sources, names, everything)
    if stamp is None:
        write(_as_json(used) if form == "json" else _as_text(used), None)
        return 0
    from btfstep.bpf.uses import stamp as stamp_text

    if depfile is not None and rule is not None:
        # First, so that no new stamp goes without it.
        write(rule.encode("utf-8", "surrogateescape"), depfile)
    write(stamp_text(used), stamp, about)
    return 0


def _uses(
    programs: Iterable[str], source: Input, sources: list[str], names: Iterable[str], everything: bool | None
) -> list[Use]:
    from btfstep.bpf.needs import Needs
    from btfstep.bpf.uses import uses

    needs = Needs()
    for program in programs:
        needs.add(program, everything=everything)
    if sources:
        from btfstep.bpf.source import read_sources

        needs.limit(read_sources(sources))
    for name in names:
        needs.add_type(name)
    return uses(needs, source.open().reader)


def _all_there(programs: Iterable[str]) -> bool:
    import os

    return all(os.path.exists(program) for program in programs)


def _not_yet(stamp: str | None, *, explain: bool) -> int:
    """Nothing is known yet: keep the stamp that there is, or make one that any use will differ from."""
    import os

    there = stamp is None or os.path.exists(stamp)
    if not there:
        write(b"", stamp)
    if explain:
        from btfstep.cli import warn

        warn(f"{printable(stamp or '')}: {'not written' if there else 'written empty'}: an object is not there yet")
    return 0


def _as_text(used: Iterable[Use]) -> bytes:
    lines = [f"{use.kind + ' ' + use.name:<47} {use.why if use.digest else 'not there: ' + use.why}\n" for use in used]
    return "".join(lines).encode("utf-8", "surrogateescape")


def _as_json(used: Iterable[Use]) -> bytes:
    import json

    entries = [{"kind": use.kind, "name": use.name, "why": use.why, "digest": use.digest or None} for use in used]
    return (json.dumps(entries, indent=2) + "\n").encode()
