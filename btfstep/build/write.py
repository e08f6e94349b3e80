# SPDX-License-Identifier: GPL-2.0-only
"""Outputs that are written only if their content changed, and never half.

New content goes into a file beside the target and takes its name when it is complete, so
a reader sees the old output or the new one. A kill half-way leaves at most a file named
``.TARGET.XXXXXXXX.tmp``, which the usual ignore and clean rules of dot files cover.

There is no fsync: an output that a power cut loses is made again by the next build.
"""

from __future__ import annotations

import os
import stat

from ..errors import BtfstepError
from .interrupt import atomic, forget, undo_if_interrupted

TYPE_CHECKING = False  # typing itself is not imported: it costs a quarter of a bare start-up
if TYPE_CHECKING:
    from collections.abc import Callable

# How much is compared at a time; small enough for the cache.
_COMPARE = 256 << 10
_NAME_MAX = 255


def write_if_changed(path: str | os.PathLike[str], data: bytes | bytearray | memoryview) -> bool:
    """Make *data* the content of the file *path*; False if it was that already, and nothing was done.

    An unchanged file keeps its inode and modification time. A changed one is replaced;
    it keeps the mode, and where permitted the owner, of the old one. A new file gets
    0666 less the umask. A symbolic link is followed: the file that it names is replaced.
    What is not a regular file (a FIFO, ``/dev/null``), and what names an open descriptor
    (``/dev/stdout``, ``/dev/fd/N``), is written directly, and counts as changed.

    Raises BtfstepError, which names *path*; then the old output is as it was.
    """
    path = os.fspath(path)
    view = memoryview(data).cast("B")
    try:
        fd = _descriptor(path)
        if fd is not None:
            write_all(fd, view)
            return True
        target = os.path.realpath(path)
        try:
            old = os.stat(target)
        except FileNotFoundError:
            old = None
        if old is not None and not stat.S_ISREG(old.st_mode):
            _write_special(target, view)
            return True
        if old is not None and old.st_size == len(view) and _holds(target, view):
            return False
        replace(target, lambda out: write_all(out, view), like=old)
        return True
    except OSError as error:
        raise BtfstepError(f"cannot write: {error.strerror}", path=path) from None
    except ValueError as error:  # a null byte in the name
        raise BtfstepError(f"cannot write: {error}", path=path) from None


def replace(target: str, fill: Callable[[int], None], *, like: os.stat_result | None = None) -> None:
    """Put a new file at *target*, which is no symbolic link, with what *fill* writes to a descriptor.

    The mode, and where permitted the owner, are those of *like*; without it, those of a
    new file. If *fill* or anything else raises, *target* is untouched and no other file
    remains. Other hard links to the old file keep the old content.

    Raises OSError, and whatever *fill* raises.
    """
    folder, name = os.path.split(target)
    while True:
        tail = f".{os.urandom(4).hex()}.tmp"
        beside = os.path.join(folder, "." + _shorten(name, _NAME_MAX - 1 - len(tail)) + tail)

        def remove(name: str = beside) -> None:
            os.unlink(name)

        try:
            with atomic:
                fd = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
                undo_if_interrupted(remove)
            break
        except FileExistsError:
            continue
    try:
        try:
            fill(fd)
            if like is not None:
                _take_over(fd, like)
        finally:
            os.close(fd)
        with atomic:
            os.replace(beside, target)
            forget(remove)
    except BaseException:
        with atomic:
            forget(remove)
            try:
                remove()
            except OSError:
                pass  # what went wrong first is what to report
        raise


def write_all(fd: int, view: memoryview) -> None:
    """Write all of *view* (bytes) at the descriptor's position. Raises OSError."""
    while view:
        view = view[os.write(fd, view) :]


def touch_file(path: str) -> None:
    """Move the modification time of the file *path* to now.

    Raises BtfstepError, which names *path*.
    """
    try:
        os.utime(path)
    except OSError as error:
        raise BtfstepError(f"cannot write: {error.strerror}", path=path) from None


def _shorten(name: str, size: int) -> str:
    """The start of *name* that takes at most *size* bytes in the file system."""
    return os.fsdecode(os.fsencode(name)[:size])


def _take_over(fd: int, like: os.stat_result) -> None:
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(fd, like.st_uid, like.st_gid)
        except PermissionError:
            pass  # somebody else's file: the new one is ours, as with any tool that rewrites it
    os.fchmod(fd, stat.S_IMODE(like.st_mode))


def _descriptor(path: str) -> int | None:
    """The open descriptor that *path* names, if it is the name of one.

    Opening such a name again would start at offset 0 of a file that the shell appends
    to, and does not work for a socket; renaming over it would miss the open file.
    """
    standard = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
    if path in standard:
        return standard[path]
    for folder in ("/dev/fd/", "/proc/self/fd/"):
        number = path[len(folder) :]
        if path.startswith(folder) and number.isascii() and number.isdigit() and len(number) < 10:
            return int(number)
    return None


def _write_special(target: str, view: memoryview) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        write_all(fd, view)
    finally:
        os.close(fd)


def _holds(target: str, view: memoryview) -> bool:
    """Whether the file, of the same size, has these bytes. One that cannot be read has not."""
    try:
        fd = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return False
    try:
        at = 0
        while chunk := os.read(fd, _COMPARE):
            # Copied, because bytes compare many times faster with bytes than with a view.
            if chunk != bytes(view[at : at + len(chunk)]):
                return False
            at += len(chunk)
        return at == len(view)
    finally:
        os.close(fd)
