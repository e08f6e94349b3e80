# SPDX-License-Identifier: GPL-2.0-only
"""``btfstep vmlinux-h``: the header that BPF programs include."""

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

ONLY = option("only", metavar="NAME[,NAME...]", help="only these types and what they need; shell patterns are allowed")
DEPFILE = option("depfile", metavar="FILE", help="write what was read to FILE, for make and Ninja")
OPTIONS = (OUTPUT, BASE, ONLY, ROOT_ID, UNSORTED, DEPFILE, EXPLAIN, JOBS, FEATURES, HELP)
USAGE = "btfstep vmlinux-h [INPUT] [-o FILE] [OPTION...]"
ABOUT = """\
Writes the types of INPUT as C, as bpftool does. INPUT is an ELF file with BTF, a file of raw BTF, or an ELF file
with DWARF, which is encoded on the way; without INPUT, it is the running kernel's BTF.
"""


def run(argv: Sequence[str]) -> int:
    """Read a command line and do what it says. Return the exit status; raise what stopped it."""
    source = Input()
    output: str | None = None
    depfile: str | None = None
    about: Callable[[bytes, bytes], str] | None = None
    names: list[str] = []
    ids: list[int] = []
    sort = True
    for argument in arguments(argv, OPTIONS):
        if source.take(argument):
            continue
        value = argument.value or ""
        if argument.option is HELP:
            sys.stdout.write(help_text(USAGE, ABOUT, OPTIONS))
            sys.stdout.flush()
            return 0
        if argument.option is OUTPUT:
            output = value
        elif argument.option is DEPFILE:
            depfile = value
        elif argument.option is EXPLAIN:
            from btfstep.cli.explain import header_difference as about
        elif argument.option is ONLY:
            names += value.split(",")
        elif argument.option is ROOT_ID:
            add_id(ids, value)
        elif argument.option is UNSORTED:
            sort = False
    if names and ids:
        raise UsageError("--only and --root-id exclude each other")
    rule: str | None = None
    if depfile is not None:
        from btfstep.build.depfile import depfile_text

        if output is None:
            raise UsageError("--depfile needs -o FILE, which it is about")
        rule = depfile_text(output, source.files)
    data = source.open().header(sort=sort, root_ids=ids, only=names)
    if depfile is not None and rule is not None:
        # First, so that no new header goes without it.
        write(rule.encode("utf-8", "surrogateescape"), depfile)
    write(data, output, about)
    return 0
