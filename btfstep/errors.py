# SPDX-License-Identifier: GPL-2.0-only
"""The errors that btfstep raises, each one line that says where and what."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with what cannot be printed escaped: names of files may hold anything, and this goes to a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class BtfstepError(Exception):
    """Anything that stops btfstep from producing what was asked for.

    ``str()`` is the one line that the command prints: the file, the section
    and the offset where they apply, and the message.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        section: str | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.section = section
        self.offset = offset

    def __str__(self) -> str:
        place = []
        if self.path is not None:
            place.append(self.path)
        if self.section is not None:
            where = self.section
            if self.offset is not None:
                where += f"+{self.offset:#x}"
            place.append(where)
        elif self.offset is not None:
            place.append(f"offset {self.offset:#x}")
        return printable(": ".join([*place, self.message]))


def of_system(error: OSError | ValueError, path: str) -> BtfstepError:
    """What the system says of the file `path`. ValueError: what Python says of a null byte in the name."""
    return BtfstepError(getattr(error, "strerror", None) or str(error), path=path)


class FormatError(BtfstepError):
    """The input is truncated, malformed, or of a kind that is not supported."""


class EncodeError(BtfstepError):
    """The input is well formed, but BTF cannot express what it holds."""


class UsageError(BtfstepError):
    """The command line, or a call's arguments, ask for something impossible."""
