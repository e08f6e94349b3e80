# SPDX-License-Identifier: GPL-2.0-only
"""Adding, replacing or removing sections of an ELF file in place, such that a kill at any moment leaves a good file.

What is new (contents, section names, section headers) goes where the current file has
nothing: at its end, or into bytes that an earlier replacement left dead. Until then
nothing refers to it. One write of the ELF header, of 52 or 64 bytes, then switches from
the old section header table to the new one. So the cost is that of the new bytes, however
large the file; what was loaded at run time, symbols and relocations stay where they are.

Dead bytes: a replacement leaves the old contents and the old table behind, so the next
one finds room there, and what is then dead at the end is cut off. The file stays within
a few times the section's size of what it was. What lies between the ELF header and the
last other section is never reused, whether anything refers to it or not.

A kill means the end of the process. There is no fsync: after a power cut, build again.
"""

from __future__ import annotations

import errno
import os

from ..build.interrupt import atomic, forget, undo_if_interrupted
from ..errors import BtfstepError, FormatError, of_system
from .constants import (
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHN_LORESERVE,
    SHN_UNDEF,
    SHN_XINDEX,
    SHT_NOBITS,
    SHT_PROGBITS,
)
from .image import ElfImage, Section

TYPE_CHECKING = False  # typing itself is not imported: it costs a quarter of a bare start-up
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# BTF is read as 32-bit words; readers that map the file like it aligned, whatever sh_addralign says.
_MIN_ALIGN = 8
_MAX_ALIGN = 1 << 16
# A signal waits until so much is written.
_WRITE = 1 << 20

# Fields of a section header and of the ELF header, as their formats in ``Layout`` number them.
_SH_SIZE, _SH_LINK = 5, 6
_E_SHOFF, _E_SHNUM, _E_SHSTRNDX = 6, 12, 13


def set_section(
    path: str | os.PathLike[str], name: str, contents: bytes | bytearray | memoryview, *, touch: bool = True
) -> bool:
    """``set_sections`` for one section."""
    return set_sections(path, {name: contents}, touch=touch)


def set_sections(
    path: str | os.PathLike[str], sections: Mapping[str, bytes | bytearray | memoryview | None], *, touch: bool = True
) -> bool:
    """Give the ELF file *path* these sections, all of them at once; whether anything was written.

    None for contents: there is to be no such section. If every section is as it should
    be already, nothing is written; the modification time moves if *touch*.

    A new section is SHT_PROGBITS, without flags, aligned to 1, as objcopy adds it. One
    that exists keeps its type, flags and place in the section table. If it is part of a
    loaded segment (``.BTF`` of a linked kernel), the segment must stay as it is: bytes of
    the same size replace the old ones, in a copy of the file that then takes its name (so
    other hard links keep the old file); bytes of another size are detached, that is the
    section moves to the end of the file, loses SHF_ALLOC and gets an address behind all
    that is loaded, while the segment keeps the old bytes. One that is removed leaves an
    inactive entry (SHT_NULL) in the section table, because symbols and other sections
    refer to those behind it by number; all sections of its name are removed.

    Views of an image of the file that was opened before may show other bytes, or fault,
    afterwards: close it first.

    Raises FormatError if the file is malformed, has no section names or would outgrow a
    32-bit file; BtfstepError if it cannot be read or written. Then it is as it was.
    """
    path = os.fspath(path)
    wanted = {name: None if contents is None else memoryview(contents).cast("B") for name, contents in sections.items()}
    fd, denied = _open(path)
    try:
        try:
            with ElfImage(path, fd) as image:
                changed = {name: contents for name, contents in wanted.items() if not _holds(image, name, contents)}
                if not changed:
                    if touch:
                        # Not with a time of our own: the clock of file times lags behind,
                        # and what is written next would look older than this.
                        os.utime(fd)
                    return False
                if denied is not None:
                    raise denied
                _change(image, fd, changed)
        finally:
            os.close(fd)
    except OSError as error:
        raise BtfstepError(f"cannot write: {error.strerror}", path=path) from None
    return True


def _open(path: str) -> tuple[int, OSError | None]:
    """A descriptor for reading and writing; or one for reading, and why not for writing."""
    flags = os.O_CLOEXEC | os.O_NONBLOCK
    try:
        try:
            return os.open(path, os.O_RDWR | flags), None
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY):
                raise
            return os.open(path, os.O_RDONLY | flags), error
    except (OSError, ValueError) as error:
        raise of_system(error, path) from None


def _holds(image: ElfImage, name: str, contents: memoryview | None) -> bool:
    section = image.section(name)
    if section is None or contents is None:
        return section is None and contents is None
    if section.type == SHT_NOBITS or section.flags & SHF_COMPRESSED:
        return False
    # Copied, because bytes compare many times faster with bytes than views do.
    return section.size == len(contents) and bytes(image.raw_contents(section)) == bytes(contents)


def _change(image: ElfImage, fd: int, changed: dict[str, memoryview | None]) -> None:
    overwrite: dict[int, memoryview] = {}
    move: dict[str, memoryview | None] = {}
    for name, contents in changed.items():
        section = image.section(name)
        if section is not None and contents is not None and _loaded(image, section) and section.size == len(contents):
            overwrite[section.offset] = contents
        else:
            move[name] = contents
    if not overwrite:
        _append(image, fd, move)
        return

    from ..build.write import replace, write_all

    def fill(copy: int) -> None:
        write_all(copy, image.data)
        for offset, contents in overwrite.items():
            _pwrite_all(copy, contents, offset)
        if move:
            _append(image, copy, move)

    replace(os.path.realpath(image.path), fill, like=os.fstat(fd))


def _loaded(image: ElfImage, section: Section) -> bool:
    return bool(section.flags & SHF_ALLOC and section.type != SHT_NOBITS and image.phnum)


def _append(image: ElfImage, fd: int, changed: dict[str, memoryview | None]) -> None:
    """Write the new contents, names and table into dead space of *fd*, then switch the header."""
    added = {name: contents for name, contents in changed.items() if contents is not None}
    removed = [section for section in image.sections if section.name in changed and section.name not in added]
    if image.shstrndx == SHN_UNDEF:
        raise FormatError("has no section names, so no section can be added", path=image.path)
    record = image.layout.shdr
    table = bytearray(image.data[image.shoff : image.shoff + len(image.sections) * record.size])

    # Entries that a removal left behind; the first one is not for sections.
    inactive = [section.index for section in image.sections[1:] if not any(section[2:])]

    name_offsets, names = _names(image, [name for name in added if image.section(name) is None])
    parts: list[tuple[int, Section, memoryview]] = []  # sh_name, the section without its place, its bytes
    if names is not None:
        section = image.sections[image.shstrndx]
        if _loaded(image, section):
            raise FormatError("section names are in a loaded segment", path=image.path, section=section.name)
        parts.append((_sh_name(image, section), section._replace(size=len(names)), memoryview(names)))
    for name, contents in added.items():
        section = image.section(name)
        if section is None:
            index = inactive.pop() if inactive else len(table) // record.size
            if index == len(table) // record.size:
                table += bytes(record.size)
            section = Section(index, name, SHT_PROGBITS, 0, 0, 0, len(contents), 0, 0, 1, 0)
            parts.append((name_offsets[name], section, contents))
        else:
            parts.append((_sh_name(image, section), _moved(image, section, len(contents)), contents))

    for section in removed:
        table[section.index * record.size : (section.index + 1) * record.size] = bytes(record.size)

    replaced = {section.index for _, section, _ in parts} | {section.index for section in removed}
    boundary, gaps = _dead_space(image, replaced)
    old_size = len(image.data)
    sizes = [(_file_align(section), section.size) for _, section, _ in parts]
    sizes.append((_MIN_ALIGN, len(table)))
    for start, end in [*gaps, (old_size, image.layout.address_max)]:
        places = list(_place(start, sizes))
        if places[-1] + len(table) <= end:
            break
    else:
        raise FormatError("would grow past what the offsets of a 32-bit ELF file reach", path=image.path)

    writes = []
    for place, (sh_name, section, contents) in zip(places, parts, strict=False):  # the table has the last place
        record.pack_into(table, section.index * record.size, sh_name, *section._replace(offset=place)[2:])
        writes.append((place, contents))
    header = _switched_header(image, table, places[-1])
    writes.append((places[-1], memoryview(table)))

    old = os.fstat(fd)

    def undo() -> None:
        _undo_growth(fd, old, header)

    with atomic:
        undo_if_interrupted(undo)
    try:
        for place, contents in writes:
            _pwrite_all(fd, contents, place)
        _pwrite_all(fd, memoryview(header), 0)
    except BaseException:
        undo()
        raise
    finally:
        with atomic:
            forget(undo)

    # The table and the names are the file's own; whatever else survives ends before boundary.
    end = max([boundary, *(place + len(contents) for place, contents in writes)])
    if names is None:
        section = image.sections[image.shstrndx]
        end = max(end, section.offset + section.size)
    if end < old_size:
        os.ftruncate(fd, end)


def _names(image: ElfImage, new: list[str]) -> tuple[dict[str, int], bytes | None]:
    """Offsets of the new names in the section name table, and that table if it has to grow."""
    old = bytes(image.raw_contents(image.sections[image.shstrndx]))
    strings = old if old.endswith(b"\0") else old + b"\0"
    offsets = {}
    for name in new:
        text = name.encode("utf-8", "surrogateescape") + b"\0"
        if strings.find(text) < 0:
            strings += text
        offsets[name] = strings.find(text)
    return offsets, None if strings == old else strings


def _sh_name(image: ElfImage, section: Section) -> int:
    name: int = image.layout.shdr.unpack_from(image.data, image.shoff + section.index * image.layout.shdr.size)[0]
    return name


def _moved(image: ElfImage, section: Section, size: int) -> Section:
    """The header of an existing section whose new contents, of *size* bytes, are outside any segment."""
    if _loaded(image, section):
        section = section._replace(flags=section.flags & ~SHF_ALLOC, addr=_behind(image, size))
    kind = SHT_PROGBITS if section.type == SHT_NOBITS else section.type
    return section._replace(type=kind, flags=section.flags & ~SHF_COMPRESSED, size=size)


def _behind(image: ElfImage, size: int) -> int:
    """An address where nothing is loaded, for *size* bytes that are not either.

    It should be 0. But variables are looked up in the first section that covers their
    address, loaded or not, here as in pahole; and per-CPU variables do lie at 0.
    """
    ends = [section.addr + section.size for section in image.sections if section.flags & SHF_ALLOC]
    end = -(-max(ends, default=0) // _MIN_ALIGN) * _MIN_ALIGN
    return end if end + size <= image.layout.address_max else 0


def _file_align(section: Section) -> int:
    align = section.addralign
    return align if _MIN_ALIGN < align <= _MAX_ALIGN and align & (align - 1) == 0 else _MIN_ALIGN


def _place(start: int, sizes: Iterable[tuple[int, int]]) -> Iterator[int]:
    for align, size in sizes:
        start = -(-start // align) * align
        yield start
        start += size


def _dead_space(image: ElfImage, replaced: set[int]) -> tuple[int, list[tuple[int, int]]]:
    """Where everything ends that is not *replaced*, names or section table; the gaps between those after it.

    What follows the last of them is no gap: it may be data that somebody appended to the
    file, such as a module's signature, and a write that fails must leave it.
    """
    size = len(image.data)
    boundary = max(image.layout.ehdr.size, image.phoff + image.phnum * image.layout.phdr.size if image.phnum else 0)
    for segment in image.segments():
        boundary = max(boundary, segment.offset + segment.filesz)
    tail = [(image.shoff, image.shoff + len(image.sections) * image.layout.shdr.size)]
    for section in image.sections:
        if section.type == SHT_NOBITS or section.index == 0:
            continue
        end = section.offset + section.size
        if section.index == image.shstrndx or section.index in replaced:
            tail.append((section.offset, end))
        else:
            boundary = max(boundary, end)
    boundary = min(boundary, size)

    gaps = []
    at = boundary
    for start, end in sorted(tail):
        if start > at:
            gaps.append((at, start))
        at = max(at, end)
    return boundary, gaps


def _switched_header(image: ElfImage, table: bytearray, shoff: int) -> bytes:
    """The ELF header that names *table* at *shoff*; completes section 0 of the table for large numbers."""
    record = image.layout.shdr
    count = len(table) // record.size
    large_count = count >= SHN_LORESERVE
    large_index = image.shstrndx >= SHN_LORESERVE

    zero = list(record.unpack_from(table))
    zero[_SH_SIZE] = count if large_count else 0
    zero[_SH_LINK] = image.shstrndx if large_index else 0
    record.pack_into(table, 0, *zero)

    fields = list(image.layout.ehdr.unpack_from(image.data))
    fields[_E_SHOFF] = shoff
    fields[_E_SHNUM] = 0 if large_count else count
    fields[_E_SHSTRNDX] = SHN_XINDEX if large_index else image.shstrndx
    return image.layout.ehdr.pack(*fields)


def _undo_growth(fd: int, old: os.stat_result, header: bytes) -> None:
    """Cut off what a failed append wrote, unless the header that refers to it made it to the file."""
    try:
        if os.pread(fd, len(header), 0) != header:
            if os.fstat(fd).st_size > old.st_size:
                os.ftruncate(fd, old.st_size)
            # The file is as it was, so make need not think that this is what it was to become.
            os.utime(fd, ns=(old.st_atime_ns, old.st_mtime_ns))
    except OSError:
        pass  # the file is good either way; what failed first is what to report


def _pwrite_all(fd: int, view: memoryview, offset: int) -> None:
    while view:
        with atomic:  # or it might write after what is undone
            written = os.pwrite(fd, view[:_WRITE], offset)
        view = view[written:]
        offset += written
