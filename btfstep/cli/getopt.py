# SPDX-License-Identifier: GPL-2.0-only
"""Command lines as GNU getopt_long reads them, which is how pahole reads its own.

Options may follow FILEs, long names may be cut short as long as they stay
unambiguous, short options may be run together, an optional value has to be
attached, and ``--`` ends the options.
"""

from __future__ import annotations

from btfstep._record import Record
from btfstep.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NONE = 0
REQUIRED = 1
OPTIONAL = 2

EX_USAGE = 64


class CommandLineError(UsageError):
    """The command line cannot be read. Exit status 64, as pahole has it."""

    exit_status = EX_USAGE


class Option(Record):
    """One option: its long name, its letter, whether it takes a value, and what help says."""

    __slots__ = ("help", "letter", "metavar", "name", "value")

    name: str
    letter: str | None
    value: int
    metavar: str
    help: str


def option(
    name: str, letter: str | None = None, metavar: str = "", help: str = "", *, optional: bool = False
) -> Option:
    """An option; it takes a value if it has a metavar."""
    value = (OPTIONAL if optional else REQUIRED) if metavar else NONE
    return Option(name=name, letter=letter, value=value, metavar=metavar, help=help)


class Argument(Record):
    """One thing found on the command line.

    `option` is None for a FILE, whose text is then in `value`. `index` is the
    argument's place in the command line, and `spelled` what the user wrote.
    """

    __slots__ = ("index", "option", "spelled", "value")

    option: Option | None
    value: str | None
    index: int
    spelled: str


def scan(argv: Sequence[str], options: Sequence[Option]) -> Iterator[Argument]:
    """Yield what is on the command line, left to right, as it is read.

    Raises CommandLineError at the first argument that makes no sense, after
    the ones before it have been yielded.
    """
    by_name = {option.name: option for option in options}
    by_letter = {option.letter: option for option in options if option.letter is not None}
    index = 0
    while index < len(argv):
        here, text = index, argv[index]
        index += 1
        if text == "--":
            for rest in range(index, len(argv)):
                yield Argument(option=None, value=argv[rest], index=rest, spelled=argv[rest])
            return
        if text.startswith("--"):
            name, equals, attached = text[2:].partition("=")
            found = _find(name, by_name)
            value = attached if equals else None
            if value is not None and found.value == NONE:
                raise CommandLineError(f"option '--{found.name}' doesn't allow a value")
            if value is None and found.value == REQUIRED:
                if index == len(argv):
                    raise CommandLineError(f"option '--{found.name}' requires a value")
                value = argv[index]
                index += 1
            yield Argument(option=found, value=value, index=here, spelled=f"--{found.name}")
        elif text.startswith("-") and text != "-":
            at = 1
            while at < len(text):
                letter = text[at]
                at += 1
                if letter not in by_letter:
                    raise CommandLineError(f"invalid option '-{letter}'; see btfstep --help")
                found = by_letter[letter]
                value = None
                if found.value != NONE:
                    if at < len(text):
                        value = text[at:]
                    elif found.value == REQUIRED:
                        if index == len(argv):
                            raise CommandLineError(f"option '-{letter}' requires a value")
                        value = argv[index]
                        index += 1
                    at = len(text)
                yield Argument(option=found, value=value, index=here, spelled=f"-{letter}")
        else:
            yield Argument(option=None, value=text, index=here, spelled=text)


def _find(name: str, by_name: dict[str, Option]) -> Option:
    if name in by_name:
        return by_name[name]
    candidates = [known for known in by_name if known.startswith(name)]
    if not candidates:
        raise CommandLineError(f"unrecognized option '--{name}'; see btfstep --help")
    if len(candidates) > 1:
        possible = ", ".join(f"--{candidate}" for candidate in candidates)
        raise CommandLineError(f"option '--{name}' is ambiguous: {possible}")
    return by_name[candidates[0]]
