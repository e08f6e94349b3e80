# SPDX-License-Identifier: GPL-2.0-only
"""What the commands that read BTF have in common: their options for it, and how it is opened."""

from __future__ import annotations

import os
import sys

from btfstep.cli.getopt import Argument, CommandLineError, option, scan
from btfstep.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from btfstep.btf.reader import BtfReader
    from btfstep.btf.view import Btf
    from btfstep.cli.getopt import Option

BASE = option("base", "B", "BASE", "what INPUT was split from: the kernel's BTF, for a module")
JOBS = option("jobs", "j", "N", "encode DWARF with N threads; without N, one for each processor", optional=True)
FEATURES = option("btf_features", metavar="LIST", help="what to encode of DWARF (default: 'default')")
ROOT_ID = option("root-id", metavar="N", help="only type N and what it needs; may be repeated")
UNSORTED = option("unsorted", help="in the order of type ids, not of names")
OUTPUT = option("output", "o", "FILE", "write to FILE, unless it holds the same already")
EXPLAIN = option("explain", help="say on standard error why FILE was written, or why not")
HELP = option("help", "h", help="this text")

ROOT_IDS_MAX = 16


class Input:
    """An input as a command line describes it."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.base: str | None = None
        self.jobs: str | None = "1"
        self.feature_lists: list[str] = []
        self._encoded: dict[str, bytes] = {}  # what DWARF was encoded to, by path

    def take(self, argument: Argument) -> bool:
        """Apply an argument, if it is about the input. Raises CommandLineError for a second one."""
        if argument.option is None:
            if self.path is not None:
                raise CommandLineError(f"one INPUT at a time, please: {self.path}, {argument.value}")
            self.path = argument.value
        elif argument.option is BASE:
            self.base = argument.value
        elif argument.option is JOBS:
            self.jobs = argument.value
        elif argument.option is FEATURES:
            assert argument.value is not None
            self.feature_lists.append(argument.value)
        else:
            return False
        return True

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        from btfstep.btf.load import RUNNING_KERNEL

        return [RUNNING_KERNEL if self.path is None else self.path, *([] if self.base is None else [self.base])]

    def open(self) -> Btf:
        """Open it. Raises as ``btfstep.open_btf``."""
        from btfstep.encode.open import open_btf, open_with

        if self.path is None:
            return open_btf(base=self.base)
        if self.path.startswith("/sys/"):
            return open_btf(self.path, base=self.base)
        return open_with(self.path, self.base, self._encode)

    def binary(self) -> bytes:
        """Its BTF as it is, once that has been read and checked. Raises as ``btfstep.open_btf``."""
        from btfstep.btf.load import RUNNING_KERNEL, load_binary

        path = RUNNING_KERNEL if self.path is None else self.path
        self.open()
        if path in self._encoded:
            return self._encoded[path]
        return load_binary(path)

    def _encode(self, path: str, base: BtfReader | None) -> bytes:
        from btfstep.build.jobserver import permits
        from btfstep.encode.jobs import parse_jobs
        from btfstep.encode.open import encode_dwarf
        from btfstep.encode.settings import EncodeSettings
        from btfstep.features import FeatureChoice

        choice = FeatureChoice()
        for text in self.feature_lists or ["default"]:
            choice.add_list(text)
        jobs = parse_jobs(self.jobs)
        with permits(jobs) as allowed:
            data = encode_dwarf(path, base, jobs, EncodeSettings(features=choice.features()), allowed)
        self._encoded[path] = data
        return data


def arguments(argv: Sequence[str], options: Sequence[Option]) -> Iterator[Argument]:
    """What is on a command line; ``-j N`` may be two arguments, unless N is a file."""
    taken = -1
    for argument in scan(argv, options):
        if argument.option is None and argument.index == taken:
            continue
        if argument.option is JOBS and argument.value is None:
            following = argv[argument.index + 1 : argument.index + 2]
            if following and following[0].isascii() and following[0].isdigit() and not os.path.exists(following[0]):
                taken = argument.index + 1
                argument = argument.replace(value=following[0])
        yield argument


def parse_id(text: str) -> int:
    """A type id: decimal, 0x..., or octal with a leading 0. Raises UsageError."""
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    base = 16 if digits is not text else 8 if text.startswith("0") and len(text) > 1 else 10
    try:
        if not digits.isalnum() or len(text) > 20:
            raise ValueError
        return int(digits, base)
    except ValueError:
        raise UsageError(f"'{text}' is no type id") from None


def add_id(ids: list[int], text: str) -> None:
    """Add a type id to a list, within the limits of bpftool. Raises UsageError."""
    type_id = parse_id(text)
    if type_id in ids:
        raise UsageError(f"root ID {type_id} is given twice")
    if len(ids) == ROOT_IDS_MAX:
        raise UsageError(f"only {ROOT_IDS_MAX} root IDs are supported")
    ids.append(type_id)


def write(data: bytes, output: str | None, about: Callable[[bytes, bytes], str] | None = None) -> None:
    """Write to a file if it changes by that, or to standard output. Raises BtfstepError, OSError.

    With `about`, which says what is different between the old contents and the new ones, tell what became of the file.
    """
    if output is None:
        if about is not None:
            raise UsageError("--explain is about a file that is written; name it")
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    from btfstep.build.write import write_if_changed

    if about is None:
        write_if_changed(output, data)
        return
    from btfstep.cli import warn
    from btfstep.cli.explain import Explainer

    explainer = Explainer(output, about)
    warn(explainer.tell(data, write_if_changed(output, data)))


def help_text(usage: str, about: str, options: Sequence[Option]) -> str:
    """The text of ``--help``."""
    from btfstep.cli.help import row, spelling

    return "\n".join([f"Usage: {usage}\n", about, *(row(spelling(option), option.help) for option in options)]) + "\n"
