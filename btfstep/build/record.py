# SPDX-License-Identifier: GPL-2.0-only
"""What was made of a file, kept beside it, so that the same need not be made again.

The record of ``dir/foo.ko`` is ``dir/.foo.ko.btf``: the kernel's ``make clean`` removes
``*.ko.*``, also inside ``M=`` directories, and its ``.gitignore`` covers names that start
with a dot. It holds a key, which is a digest of everything that the result depends on,
notes, which tell what that was to those who ask why the key is another one now, and the
result: contents by section name. It holds no path, so a build directory may be renamed or
copied.

A record is never needed. One that is missing, damaged (there is a checksum), of another
version or for another key is as good as none; one that cannot be written is left out.
"""

from __future__ import annotations

import os
import stat
from struct import Struct

from xxhash import xxh3_128

from ..errors import BtfstepError

TYPE_CHECKING = False  # typing itself is not imported: it costs a quarter of a bare start-up
if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_SIZE = 16

# The last byte counts versions of this format.
_MAGIC = b"\x89btfstep record\x03"
# The size of the notes, which follow; so do the sections.
_NOTES = Struct("<I")
# Sizes of a section's name and contents; they follow.
_SECTION = Struct("<HQ")
_HEAD = len(_MAGIC) + 2 * KEY_SIZE  # magic, checksum of the rest, key
_SIZE_MAX = 1 << 30


def record_path(path: str) -> str:
    """Where the record of the file `path` is; of the file itself if that is a symbolic link."""
    folder, name = os.path.split(os.path.realpath(path))
    return os.path.join(folder, f".{name}.btf")


def recall(path: str, key: bytes) -> dict[str, bytes] | None:
    """What was made of the file `path` when its key was `key`; None if that is not known."""
    known = _read(path, key)
    return None if known is None else known[1]


def last(path: str) -> tuple[bytes, dict[str, bytes]] | None:
    """The notes about what was last made of the file `path`, and that, whatever the key; None if nothing is known."""
    return _read(path, None)


def remember(path: str, key: bytes, sections: Mapping[str, bytes], notes: bytes = b"") -> bool:
    """Keep what was made of the file `path`; whether that was possible."""
    from .write import write_if_changed

    parts = [_NOTES.pack(len(notes)), notes]
    for section, contents in sections.items():
        name = section.encode()
        parts += [_SECTION.pack(len(name), len(contents)), name, contents]
    rest = b"".join(parts)
    if _HEAD + len(rest) > _SIZE_MAX:
        return False
    try:
        target = record_path(path)
        if os.path.lexists(target) and not stat.S_ISREG(os.lstat(target).st_mode):
            return False  # who reads a FIFO, and what a symbolic link names, has nothing to do with this
        write_if_changed(target, _MAGIC + _checksum(key, rest) + key + rest)
    except (BtfstepError, OSError):
        return False  # a directory that is read-only, a name that would be too long, ...
    return True


def _read(path: str, key: bytes | None) -> tuple[bytes, dict[str, bytes]] | None:
    """The notes and sections of a record, if it is a good one and, unless that is None, for this key."""
    try:
        fd = os.open(record_path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        with open(fd, "rb", buffering=0) as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or not _HEAD <= status.st_size <= _SIZE_MAX:
                return None
            head = file.read(_HEAD)
            if not head.startswith(_MAGIC) or len(head) != _HEAD or key not in (None, head[-KEY_SIZE:]):
                return None
            rest = file.read(_SIZE_MAX)
    except OSError:
        return None
    if _checksum(head[-KEY_SIZE:], rest) != head[len(_MAGIC) : -KEY_SIZE] or len(rest) < _NOTES.size:
        return None
    start = _NOTES.size + _NOTES.unpack_from(rest)[0]
    sections = _sections(rest, start)
    return None if sections is None else (rest[_NOTES.size : start], sections)


def _checksum(key: bytes, rest: bytes) -> bytes:
    digest = xxh3_128(key)
    digest.update(rest)
    return digest.digest()


def _sections(rest: bytes, at: int) -> dict[str, bytes] | None:
    """The sections in a record's last part, which starts at `at`; None if they do not fill it exactly."""
    sections = {}
    while at < len(rest):
        if len(rest) - at < _SECTION.size:
            return None
        name_size, size = _SECTION.unpack_from(rest, at)
        start = at + _SECTION.size + name_size
        at = start + size
        if at > len(rest):
            return None
        sections[rest[start - name_size : start].decode(errors="replace")] = rest[start:at]
    return sections or None
