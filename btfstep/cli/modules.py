# SPDX-License-Identifier: GPL-2.0-only
"""``btfstep modules``: many modules in one call, against one base that is read once.

With ``--btf_encode_detached=%.btf``, the BTF of each FILE goes to FILE.btf: ``%`` stands for the name, as in make.
"""

from __future__ import annotations

import os
import sys

from btfstep.cli import warn
from btfstep.cli.getopt import CommandLineError
from btfstep.cli.pahole import Command, encode_one, parse
from btfstep.errors import BtfstepError, UsageError, printable
from btfstep.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

USAGE = "btfstep modules --base BASE [-j[N]] [--btf_features=LIST] [OPTION...] FILE.ko... | @LIST..."
ABOUT = """\
Adds BTF to each FILE, as -J --btf_base=BASE does, in one process: BASE is read once, and files are taken in parallel.
@LIST stands for the names in LIST, one a line, relative to the current directory; modules.order is such a list. What
was made of a FILE is kept beside it, and not made again as long as nothing changed that it depends on. A FILE that
fails is reported, the others are done, and the exit status is 1. Features and their older options: btfstep --help.
"""

DETACHED = "btf_encode_detached"

# Names of all modules of a kernel come to a few hundred kilobytes.
_LIST_MAX = 64 << 20

WRITTEN, UNCHANGED, NO_DWARF, FAILED = "written", "unchanged", "without DWARF", "failed"


class Outcome:
    """What became of one module."""

    def __init__(self, path: str, state: str, error: Exception | None = None, notes: Sequence[str] = ()) -> None:
        self.path = path
        self.state = state
        self.error = error
        self.notes = notes  # why it became that, if that was asked


def run(argv: Sequence[str]) -> int:
    """Read the command line after ``modules`` and do what it says.

    Returns 1 if any module failed. Raises UsageError for a command line that
    makes no sense, FormatError for a base that is none.
    """
    command = parse(list(_with_base(argv)))
    if command.answer is not None:
        sys.stdout.write(_about(command.answer))
        sys.stdout.flush()
        return 0
    if command.detached is not None and "%" not in command.detached:
        raise UsageError(
            f"--btf_encode_detached={command.detached} names one file for all modules;"
            " put a % where each module's name goes, as in %.btf"
        )
    if command.base is None:
        raise CommandLineError("no --base given: the vmlinux, or raw BTF, that the modules belong to")
    if not command.files:
        raise CommandLineError("no modules given: FILE.ko..., or @LIST for a file of names")
    paths = module_paths(command.files)
    report = Report(len(paths), verbose=command.verbose)
    if paths:
        _encode_all(command, paths, report)
    report.end()
    return 1 if report.count(FAILED) else 0


def _about(answer: str) -> str:
    """The answer to a question, about this command where it would be about another."""
    if not answer.startswith("Usage:"):
        return answer
    if answer.count("\n") == 1:
        return f"Usage: {USAGE}\n"
    from btfstep.cli.getopt import option
    from btfstep.cli.inputs import help_text
    from btfstep.cli.options import HELP_GROUPS

    base = option("base", metavar="BASE", help="what to split from: the vmlinux (an ELF with .BTF), or raw BTF")
    detached = option(DETACHED, metavar="%.btf", help="write raw BTF of each FILE to a file instead; % is FILE's name")
    others = [one for one in HELP_GROUPS[0][1] if one.name not in ("btf_encode", DETACHED, "btf_base")]
    return help_text(USAGE, ABOUT, (base, detached, *others))


def _with_base(argv: Sequence[str]) -> Iterable[str]:
    """The same command line, with ``--base`` spelled as pahole spells it."""
    options = True
    for argument in argv:
        options = options and argument != "--"
        if options and (argument == "--base" or argument.startswith("--base=")):
            argument = "--btf_" + argument[2:]
        yield argument


def module_paths(files: Iterable[str]) -> list[str]:
    """The modules that a command line names, ``@LIST`` read, each once, in order.

    A LIST has a name a line, relative to the current directory. The kernel's
    ``modules.order`` is one: what it calls ``a/b.o`` is the module ``a/b.ko``
    (trees before 5.19 name the module itself). Raises BtfstepError for a list
    that cannot be read.
    """
    paths: dict[object, str] = {}  # a module that two threads change at once would be lost
    for file in files:
        for path in _read_list(file[1:]) if file.startswith("@") else [file]:
            paths.setdefault(_identity(path), path)
    return list(paths.values())


def _identity(path: str) -> object:
    """What is the same for all names of one file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return path  # it will be complained about
    return status.st_dev, status.st_ino


def _read_list(path: str) -> list[str]:
    data = read_regular(path, _LIST_MAX, "is too long for a list of modules")
    if b"\0" in data:
        raise BtfstepError("is no list of modules, which is text", path=path)
    names = [os.fsdecode(line.rstrip(b"\r")) for line in data.split(b"\n") if line.strip()]
    return [name[:-2] + ".ko" if name.endswith(".o") else name for name in names]


def _encode_all(command: Command, paths: list[str], report: Report) -> None:
    from btfstep.build.jobserver import permits
    from btfstep.encode.module import Base
    from btfstep.encode.pipeline import OrderedPipeline

    settings = command.settings(os.environ)
    detached = command.detached
    assert command.base is not None
    base = Base(command.base, prepare=len(paths) > 1)
    # A base that cannot be read is one error, not one for each module.
    base.digest()

    def work(path: str) -> Outcome:
        notes: list[str] = []
        try:
            written = encode_one(
                command,
                path,
                settings,
                jobs=1,
                base=base,
                detached=None if detached is None else detached.replace("%", path),
                explain=notes.append if command.explain else None,
            )
        except Exception as error:
            if error is base.error:
                raise  # the same for all modules
            return Outcome(path, FAILED, error)
        return Outcome(path, NO_DWARF if written is None else WRITTEN if written else UNCHANGED, notes=notes)

    with permits(command.jobs, warn if command.verbose else None) as allowed:
        OrderedPipeline(work, report.add, jobs=command.jobs, permits=allowed).run(paths)


class Report:
    """Tells what became of each module, in the order of the command line.

    On a terminal, a line that is drawn over; elsewhere a line for each module,
    as the kernel's build prints for its own steps, and none if that is silent
    (``make -s``). Failures go to standard error.
    """

    def __init__(self, total: int, *, verbose: bool) -> None:
        self._total = total
        self._counts: dict[str, int] = {}
        self._terminal = sys.stdout.isatty()
        self._drawn = False
        # Kbuild exports this, in lower case.
        self._silent = os.environ.get("quiet") == "silent_" and not verbose  # noqa: SIM112

    def count(self, state: str) -> int:
        """How many modules ended so, up to now."""
        return self._counts.get(state, 0)

    def add(self, outcome: Outcome) -> None:
        """Tell about the next module."""
        self._counts[outcome.state] = self.count(outcome.state) + 1
        if outcome.error is not None:
            self._erase()
            warn(_complaint(outcome))
        elif outcome.state == NO_DWARF:
            self._erase()
            warn(f"{outcome.path}: has no DWARF, so nothing was written")
        elif outcome.notes:
            self._erase()
        for note in outcome.notes:
            warn(note)
        if self._silent:
            return
        if self._terminal:
            self._draw(outcome.path)
        elif outcome.error is None and outcome.state != NO_DWARF:
            note = "" if outcome.state == WRITTEN else f" ({outcome.state})"
            sys.stdout.write(f"  BTF [M] {printable(outcome.path)}{note}\n")
            sys.stdout.flush()

    def end(self) -> None:
        """Tell the sum, if it was not told line by line."""
        self._erase()
        if self._terminal and not self._silent:
            counts = ", ".join(f"{count} {state}" for state, count in self._counts.items())
            sys.stdout.write(f"BTF of {self._total} modules: {counts or 'none'}\n")
        sys.stdout.flush()

    def _draw(self, path: str) -> None:
        try:
            width = os.get_terminal_size(sys.stdout.fileno()).columns or 80
        except OSError:
            width = 80
        text = f"  BTF [M] {sum(self._counts.values())}/{self._total} {printable(path)}"
        sys.stdout.write(f"\r\x1b[K{text[: width - 1]}")
        sys.stdout.flush()
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()
            self._drawn = False


def _complaint(outcome: Outcome) -> str:
    """The line about a module that failed; it names the module."""
    from btfstep.cli import describe

    assert outcome.error is not None
    line = describe(outcome.error)
    return line if line.startswith(outcome.path) else f"{printable(outcome.path)}: {line}"
