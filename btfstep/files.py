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


def read_regular(path: str, most: int, too_large: str) -> bytes:
    """The contents of a regular file. Raises FormatError, with this message, for more than `most` bytes.

    Also raises BtfstepError if it cannot be read.
    """
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size > most:
                raise FormatError(too_large, path=path)
            # What that says is not asked for at once: the kernel's own files may say anything.
            return file.readall()
    except OSError as error:
        raise BtfstepError(f"cannot read: {error.strerror}", path=path) from None


def start_of(path: str) -> bytes:
    """The first four bytes of a regular file, which tell most formats. Raises BtfstepError."""
    fd = open_regular(path)
    try:
        return os.read(fd, 4)
    except OSError as error:
        raise BtfstepError(f"cannot read: {error.strerror}", path=path) from None
    finally:
        os.close(fd)
