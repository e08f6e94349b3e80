# SPDX-License-Identifier: GPL-2.0-only
"""``btfstep btf dump file FILE``: what bpftool does, spelled as there.

For rules that were written for bpftool. As there, words may be cut short, and
options may stand anywhere.
"""

from __future__ import annotations

import sys

from btfstep.cli.dump import dump
from btfstep.cli.getopt import CommandLineError, option, scan
from btfstep.cli.inputs import HELP, Input, add_id, help_text, write
from btfstep.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

BASE = option("base-btf", "B", "BASE", "what FILE was split from: the kernel's BTF, for a module")
JSON = option("json", "j", help="JSON on one line")
PRETTY = option("pretty", "p", help="JSON with line breaks")
OPTIONS = (BASE, JSON, PRETTY, HELP)
USAGE = "btfstep btf dump file FILE [format raw|c [unsorted]] [root_id N]... [-B BASE] [-j|-p]"
ABOUT = "The spelling of bpftool, for rules that were written for it; see also 'btfstep dump --help'.\n"


def run(argv: Sequence[str]) -> int:
    """Read a command line and do what it says. Return the exit status; raise what stopped it."""
    source = Input()
    words: list[str] = []
    json = pretty = False
    for argument in scan(argv, OPTIONS):
        if argument.option is None:
            words.append(argument.value or "")
        elif argument.option is HELP:
            sys.stdout.write(help_text(USAGE, ABOUT, OPTIONS))
            sys.stdout.flush()
            return 0
        elif argument.option is BASE:
            source.base = argument.value
        else:
            json = True
            pretty = pretty or argument.option is PRETTY
    form, sort, ids = _read_words(words, source)
    if json and form == "c":
        raise UsageError("there is no JSON of C; leave out -j and -p, or 'format c'")
    write(dump(source.open(), "json" if json else form, ids, pretty=pretty, sort=sort), None)
    return 0


def _read_words(words: list[str], source: Input) -> tuple[str, bool, list[int]]:
    """Read the words: the format, whether to sort, and the root ids. Set the path of the source."""
    if not words or not _is(words[0], "dump"):
        raise UsageError(f"'btf {' '.join(words[:1])}': only 'btf dump' is here; use bpftool for the rest")
    if len(words) < 3:
        raise CommandLineError(f"usage: {USAGE}")
    if not _is(words[1], "file"):
        raise UsageError(f"'btf dump {words[1]}': only 'btf dump file FILE' is here; use bpftool for the rest")
    source.path = words[2]
    form, sort = "raw", True
    ids: list[int] = []
    rest = iter(words[3:])
    for word in rest:
        if _is(word, "file"):
            raise UsageError("one FILE at a time, please; bpftool merges several")
        if _is(word, "format"):
            form = next(rest, "")
            if form not in ("raw", "c"):
                raise UsageError(f"unknown format '{form}': there are raw and c")
        elif _is(word, "root_id"):
            add_id(ids, next(rest, ""))
        elif _is(word, "unsorted"):
            sort = False
        else:
            raise CommandLineError(f"unrecognized word '{word}'; usage: {USAGE}")
    return form, sort, ids


def _is(word: str, whole: str) -> bool:
    return bool(word) and whole.startswith(word)
