# SPDX-License-Identifier: GPL-2.0-only
"""An ELF file mapped into memory: its header, its sections, and their contents.

Read natively rather than through a library, because one step runs for each module of a
kernel and start-up is most of its time. Nothing from the file is used unchecked: what
does not lie inside the file raises FormatError, with the section and the offset. A bad
section that nobody asks for is no error.
"""

from __future__ import annotations

import mmap
import os
import stat
from struct import Struct

from ..errors import BtfstepError, FormatError
from ..files import open_file
from .constants import (
    EI_CLASS,
    EI_DATA,
    EI_NIDENT,
    EI_VERSION,
    ELFCLASS32,
    ELFCLASS64,
    ELFCOMPRESS_ZLIB,
    ELFDATA2LSB,
    ELFDATA2MSB,
    ELFMAG,
    EV_CURRENT,
    PN_XNUM,
    SHF_COMPRESSED,
    SHN_UNDEF,
    SHN_XINDEX,
    SHT_NOBITS,
)

TYPE_CHECKING = False  # typing itself is not imported: it costs a quarter of a bare start-up
if TYPE_CHECKING:
    from types import TracebackType
    from typing import NamedTuple

    class Section(NamedTuple):
        """One section header; ``addr``, ``offset`` and ``size`` are in bytes, as in the file."""

        index: int  # type: ignore[assignment]  # not the method of tuples, which nobody needs here
        name: str
        type: int
        flags: int
        addr: int
        offset: int
        size: int
        link: int
        info: int
        addralign: int
        entsize: int

    class Segment(NamedTuple):
        """One program header, its fields in the order of Elf64_Phdr."""

        type: int
        flags: int
        offset: int
        vaddr: int
        paddr: int
        filesz: int
        memsz: int
        align: int
else:
    from .tuples import named_tuple

    _FIELDS = "index name type flags addr offset size link info addralign entsize"
    Section = named_tuple(__name__, "Section", _FIELDS)
    Segment = named_tuple(__name__, "Segment", "type flags offset vaddr paddr filesz memsz align")

# Names may share bytes in the string table, so a small file can ask for a great many
# bytes of names. No real one comes near this.
_NAME_BYTES_MAX = 64 << 20


class Layout:
    """The record formats of one class and byte order."""

    def __init__(self, is64: bool, big_endian: bool) -> None:
        order = ">" if big_endian else "<"
        # After e_ident: type machine version entry phoff shoff flags ehsize phentsize phnum shentsize shnum shstrndx.
        self.ehdr = Struct(order + "16s" + ("HHIQQQIHHHHHH" if is64 else "HHIIIIIHHHHHH"))
        # name type flags addr offset size link info addralign entsize.
        self.shdr = Struct(order + ("IIQQQQIIQQ" if is64 else "10I"))
        # In 32-bit files p_flags comes seventh.
        self.phdr = Struct(order + ("IIQQQQQQ" if is64 else "8I"))
        # Elf64_Chdr has a reserved word after ch_type. Both: type size addralign.
        self.chdr = Struct(order + ("I4xQQ" if is64 else "III"))
        self.address_size = 8 if is64 else 4
        self.address_max = (1 << 8 * self.address_size) - 1


class ElfImage:
    """A mapped ELF file. A context manager; ``close()`` or leaving the block unmaps it.

    Attributes:
        path: the name it was opened by.
        data: the whole file, a read-only view of the mapping.
        ident: the 16 bytes of e_ident.
        is64, big_endian, address_size: its class and byte order; bytes in an address.
        type, machine, flags: e_type (``ET_*``), e_machine (``EM_*``), e_flags.
        sections: every section, section 0 included, in the file's order.
        shstrndx: index of the section that holds the section names, 0 if there is none.
        shoff, phoff, phnum: where the two header tables are, and how many program headers.

    The file must not be truncated by somebody else while it is mapped.
    """

    def __init__(self, path: str, fd: int) -> None:
        """Map the file open at *fd* (which stays the caller's); raises as ``open`` does."""
        self.path = path
        self._expanded = 0  # bytes that compressed sections came to
        self._map: mmap.mmap | None = None
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            raise FormatError("is a directory, not an ELF file", path=path)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError("is not a regular file", path=path)
        if status.st_size == 0:
            raise FormatError("is empty, not an ELF file", path=path)
        try:
            self._map = mmap.mmap(fd, status.st_size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise BtfstepError(f"cannot map: {error}", path=path) from None
        self.data = memoryview(self._map)
        try:
            self._read_header()
            self.sections = self._read_sections()
        except BaseException:
            self.close()
            raise
        self._by_name: dict[str, Section] = {}
        for section in reversed(self.sections):
            self._by_name[section.name] = section

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ElfImage:
        """Map the ELF file at *path*.

        Raises FormatError if it is not a well-formed ELF file, BtfstepError if it cannot
        be opened. Opening never waits, not even for a FIFO.
        """
        path = os.fspath(path)
        fd = open_file(path)
        try:
            return cls(path, fd)
        finally:
            os.close(fd)

    def __enter__(self) -> ElfImage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unmap the file. Views of it that are still held stay good; the last one to go unmaps it."""
        if self._map is None:
            return
        try:
            self.data.release()
            self._map.close()
        except BufferError:
            pass
        self._map = None

    def section(self, name: str) -> Section | None:
        """The first section of that name, or None."""
        return self._by_name.get(name)

    def raw_contents(self, section: Section) -> memoryview:
        """The section's bytes as the file holds them, without a copy; none for SHT_NOBITS.

        Raises FormatError if they do not lie inside the file.
        """
        if section.type == SHT_NOBITS:
            return self.data[:0]
        end = section.offset + section.size
        if end > len(self.data):
            raise self._error(
                f"section [{section.index}] ends at {end:#x}, past the end of the file at {len(self.data):#x}",
                section=section.name or None,
                offset=None if section.name else section.offset,
            )
        return self.data[section.offset : end]

    def contents(self, section: Section) -> memoryview:
        """The section's bytes, decompressed if it is SHF_COMPRESSED (fresh memory at each call).

        Raises FormatError if they are not inside the file or do not decompress to their
        declared size, BtfstepError if that takes zstd and it is not installed.
        """
        raw = self.raw_contents(section)
        if not section.flags & SHF_COMPRESSED or section.type == SHT_NOBITS:
            return raw
        header = self.layout.chdr
        if len(raw) < header.size:
            raise self._error("is too short for its compression header", section=section.name)
        kind, size, _align = header.unpack_from(raw)
        return self._decompress(kind, raw[header.size :], size, section.name)

    def debug_section(self, name: str) -> memoryview | None:
        """Contents of a ``.debug_*`` section, decompressed, or None if the file has none.

        Also finds the form of old GNU tools: ``.zdebug_*``, "ZLIB", and the size in 8
        big-endian bytes. A SHT_NOBITS section, left by ``strip --only-keep-debug`` and
        its like, counts as none. Raises as ``contents`` does.
        """
        section = self.section(name)
        if section is not None:
            return None if section.type == SHT_NOBITS else self.contents(section)
        if not name.startswith(".debug_"):
            return None
        section = self.section(".z" + name[1:])
        if section is None or section.type == SHT_NOBITS:
            return None
        raw = self.raw_contents(section)
        if len(raw) < 12 or bytes(raw[:4]) != b"ZLIB":
            raise self._error("does not start with ZLIB and a size", section=section.name)
        return self._decompress(ELFCOMPRESS_ZLIB, raw[12:], int.from_bytes(raw[4:12], "big"), section.name)

    def _decompress(self, kind: int, stream: memoryview, size: int, name: str) -> memoryview:
        from .compress import FREE_EXPANSION, MAX_EXPANSION, decompress

        # Each section may keep to the ratio of its method, and all together still exhaust memory.
        self._expanded += size
        if self._expanded > max(FREE_EXPANSION, MAX_EXPANSION * len(self.data)):
            raise self._error(f"expands to {size} bytes, too much for a file of {len(self.data)}", section=name)
        return decompress(kind, stream, size, path=self.path, section=name)

    def segments(self) -> list[Segment]:
        """The program headers; raises FormatError if their table is not inside the file."""
        if self.phnum == 0:
            return []
        record = self.layout.phdr
        if self._phentsize != record.size:
            raise self._error(f"program headers of {self._phentsize} bytes, not {record.size}")
        end = self.phoff + self.phnum * record.size
        if end > len(self.data):
            raise self._error("program header table past the end of the file", offset=self.phoff)
        rows = record.iter_unpack(self.data[self.phoff : end])
        if self.is64:
            return [Segment._make(row) for row in rows]
        return [Segment._make((row[0], row[6], *row[1:6], row[7])) for row in rows]

    def _error(self, message: str, *, section: str | None = None, offset: int | None = None) -> FormatError:
        return FormatError(message, path=self.path, section=section, offset=offset)

    def _read_header(self) -> None:
        ident = bytes(self.data[:EI_NIDENT])
        if not ident.startswith(ELFMAG):
            raise self._error("is not an ELF file")
        if len(ident) < EI_NIDENT:
            raise self._error("ends inside the ELF header")
        if ident[EI_CLASS] not in (ELFCLASS32, ELFCLASS64):
            raise self._error(f"unknown ELF class {ident[EI_CLASS]}", offset=EI_CLASS)
        if ident[EI_DATA] not in (ELFDATA2LSB, ELFDATA2MSB):
            raise self._error(f"unknown ELF byte order {ident[EI_DATA]}", offset=EI_DATA)
        if ident[EI_VERSION] != EV_CURRENT:
            raise self._error(f"unknown ELF version {ident[EI_VERSION]}", offset=EI_VERSION)
        self.ident = ident
        self.is64 = ident[EI_CLASS] == ELFCLASS64
        self.big_endian = ident[EI_DATA] == ELFDATA2MSB
        self.layout = Layout(self.is64, self.big_endian)
        self.address_size = self.layout.address_size
        if len(self.data) < self.layout.ehdr.size:
            raise self._error("ends inside the ELF header")
        (
            _ident,
            self.type,
            self.machine,
            _version,
            _entry,
            self.phoff,
            self.shoff,
            self.flags,
            _ehsize,
            self._phentsize,
            self.phnum,
            self._shentsize,
            self._shnum,
            self.shstrndx,
        ) = self.layout.ehdr.unpack_from(self.data)

    def _read_sections(self) -> list[Section]:
        if self.shoff == 0:
            if self._shnum:
                raise self._error(f"{self._shnum} sections, but no section header table")
            self.shstrndx = SHN_UNDEF
            return []
        record = self.layout.shdr
        if self._shentsize != record.size:
            raise self._error(f"section headers of {self._shentsize} bytes, not {record.size}")
        room = (len(self.data) - self.shoff) // record.size
        if room < 1:
            raise self._error("section header table past the end of the file", offset=self.shoff)

        # What does not fit the ELF header's 16 bits is in the header of section 0.
        zero = record.unpack_from(self.data, self.shoff)
        count = self._shnum or zero[5]
        if self.shstrndx == SHN_XINDEX:
            self.shstrndx = zero[6]
        if self.phnum == PN_XNUM:
            self.phnum = zero[7]
        if count > room:
            raise self._error(f"section header table of {count} sections past the end of the file", offset=self.shoff)

        rows = list(record.iter_unpack(self.data[self.shoff : self.shoff + count * record.size]))
        names = self._read_names(rows)
        return [Section._make((index, names[index], *row[1:])) for index, row in enumerate(rows)]

    def _read_names(self, rows: list[tuple[int, ...]]) -> list[str]:
        if self.shstrndx == SHN_UNDEF:
            return [""] * len(rows)
        if self.shstrndx >= len(rows):
            raise self._error(f"section names are in section {self.shstrndx} of {len(rows)}")
        table = self.raw_contents(Section._make((self.shstrndx, "", *rows[self.shstrndx][1:])))
        strings = bytes(table)
        known: dict[int, str] = {0: ""} if strings[:1] == b"\0" else {}
        budget = _NAME_BYTES_MAX
        names = []
        for index, row in enumerate(rows):
            start = row[0]
            name = known.get(start)
            if name is None:
                end = strings.find(b"\0", start)
                if end < 0:
                    # The null section has no name, whatever the table holds.
                    if index == 0:
                        names.append("")
                        continue
                    raise self._error(f"name of section [{index}] is not in the string table", offset=start)
                budget -= end - start
                if budget < 0:
                    raise self._error("section names overlap to an absurd length")
                name = known[start] = strings[start:end].decode("utf-8", "surrogateescape")
            names.append(name)
        return names
