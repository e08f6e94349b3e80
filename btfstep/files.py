# SPDX-License-Identifier: GPL-2.0-only
"""Opening files that somebody named, whatever they are."""

from __future__ import annotations

import os
import stat

from .errors import BtfstepError, FormatError, of_system


def open_file(path: str) -> int:
    """A descriptor for reading `path`. Never waits, not even for who writes into a FIFO.

    Raises BtfstepError if it cannot be opened.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise of_system(error, path) from None


def open_regular(path: str) -> int:
    """The same, but only for what has all of its contents now. Raises FormatError for a directory, a FIFO, ..."""
    fd = open_file(path)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    raise FormatError("is a directory" if stat.S_ISDIR(mode) else "is not a regular file", path=path)


def read_regular(path: str, limit: int = -1) -> bytes:
    """The contents of a regular file, at most `limit` bytes of it. Raises BtfstepError."""
    try:
        with open(open_regular(path), "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise BtfstepError(f"cannot read: {error.strerror}", path=path) from None
