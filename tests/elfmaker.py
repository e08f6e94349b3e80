# SPDX-License-Identifier: GPL-2.0-only
"""ELF files made by hand, for tests: either class, either byte order, any sections and symbols.

>>> maker = ElfMaker(bits=32, big_endian=True)
>>> text = maker.section(".text", b"\\0" * 8, flags=SHF_ALLOC)
>>> maker.symbol("start", shndx=text)
>>> data = maker.build()
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_NOBITS, SHT_SYMTAB_SHNDX = 1, 2, 3, 7, 8, 18
SHF_ALLOC, SHF_COMPRESSED = 0x2, 0x800
SHN_LORESERVE, SHN_ABS, SHN_XINDEX = 0xFF00, 0xFFF1, 0xFFFF
ET_REL, ET_EXEC = 1, 2
STB_LOCAL, STB_GLOBAL = 0, 1


@dataclass
class _Section:
    name: str
    data: bytes
    type: int = SHT_PROGBITS
    flags: int = 0
    addr: int = 0
    size: int | None = None
    link: int = 0
    info: int = 0
    align: int = 1
    entsize: int = 0
    offset: int = 0


@dataclass
class ElfMaker:
    """Collects sections and symbols; ``build`` returns the file's bytes.

    After the sections come, where needed, ``.symtab``, ``.strtab`` and ``.symtab_shndx``,
    then ``.shstrtab``, and the section header table at the end, as GNU ld lays them out.
    """

    bits: int = 64
    big_endian: bool = False
    machine: int = 62
    type: int = ET_REL
    _sections: list[_Section] = field(default_factory=lambda: [_Section("", b"", type=0, align=0)])
    _symbols: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    _loads: list[int] = field(default_factory=list)

    def section(
        self,
        name: str,
        data: bytes = b"",
        *,
        type: int = SHT_PROGBITS,
        flags: int = 0,
        addr: int = 0,
        size: int | None = None,
        link: int = 0,
        info: int = 0,
        align: int = 1,
        entsize: int = 0,
    ) -> int:
        """Add a section, return its index. *size* stands for the data's where they differ (SHT_NOBITS)."""
        self._sections.append(_Section(name, data, type, flags, addr, size, link, info, align, entsize))
        return len(self._sections) - 1

    def symbol(
        self, name: str, *, value: int = 0, size: int = 0, info: int = STB_GLOBAL << 4, shndx: int = SHN_ABS
    ) -> None:
        """Add a symbol (local ones first); *shndx* is a real section index, or SHN_ABS."""
        self._symbols.append((name, value, size, info, shndx))

    def load(self, index: int) -> None:
        """Add a PT_LOAD segment that covers this section."""
        self._loads.append(index)

    def note(self, owner: bytes, type: int, desc: bytes) -> bytes:
        """The bytes of one note in this file's byte order."""
        owner += b"\0"
        head = struct.pack(self._order + "III", len(owner), len(desc), type)
        return head + _padded(owner, 4) + _padded(desc, 4)

    def chdr(self, type: int, size: int, align: int = 1) -> bytes:
        """A compression header for an SHF_COMPRESSED section."""
        if self.bits == 64:
            return struct.pack(self._order + "IIQQ", type, 0, size, align)
        return struct.pack(self._order + "III", type, size, align)

    def build(self) -> bytes:
        sections = [_Section(**vars(section)) for section in self._sections]
        if self._symbols:
            self._add_symbols(sections)
        names, offsets = _strings([section.name for section in sections] + [".shstrtab"])
        sections.append(_Section(".shstrtab", names, SHT_STRTAB))

        ehsize, phsize, shsize = (64, 56, 64) if self.bits == 64 else (52, 32, 40)
        out = bytearray(ehsize + phsize * len(self._loads))
        for section in sections[1:]:
            out += bytes(-len(out) % max(section.align, 1))
            section.offset = len(out)
            out += section.data
        out += bytes(-len(out) % 8)
        shoff = len(out)

        count, names_at = len(sections), len(sections) - 1
        if count >= SHN_LORESERVE:
            sections[0].size, sections[0].link = count, names_at
            count, names_at = 0, SHN_XINDEX
        word = "Q" if self.bits == 64 else "I"
        for section in sections:
            size = len(section.data) if section.size is None else section.size
            head = (offsets[section.name], section.type, section.flags, section.addr, section.offset, size)
            tail = (section.link, section.info, section.align, section.entsize)
            out += struct.pack(f"{self._order}II{word * 4}II{word * 2}", *head, *tail)

        for number, index in enumerate(self._loads):
            section = sections[index]
            size = len(section.data)
            at = (section.offset, section.addr, section.addr, size, size)
            if self.bits == 64:
                phdr = struct.pack(self._order + "IIQQQQQQ", 1, 4, *at, 1)
            else:
                phdr = struct.pack(self._order + "8I", 1, *at, 4, 1)
            out[ehsize + number * phsize : ehsize + (number + 1) * phsize] = phdr

        ident = b"\x7fELF" + bytes([self.bits // 32, 1 + self.big_endian, 1]) + bytes(9)
        phoff = ehsize if self._loads else 0
        out[:ehsize] = ident + struct.pack(
            f"{self._order}HHI{word * 3}I6H",
            *(self.type, self.machine, 1, 0, phoff, shoff, 0),
            *(ehsize, phsize if self._loads else 0, len(self._loads), shsize, count, names_at),
        )
        return bytes(out)

    @property
    def _order(self) -> str:
        return ">" if self.big_endian else "<"

    def _add_symbols(self, sections: list[_Section]) -> None:
        strings, offsets = _strings([name for name, *_ in self._symbols])
        symbols = [("", 0, 0, 0, 0), *self._symbols]
        first_global = next((i for i, row in enumerate(symbols) if row[3] >> 4), len(symbols))
        table, indices, extended = b"", b"", False
        for name, value, size, info, shndx in symbols:
            large = shndx >= SHN_LORESERVE and shndx != SHN_ABS
            extended |= large
            indices += struct.pack(self._order + "I", shndx if large else 0)
            where = SHN_XINDEX if large else shndx
            if self.bits == 64:
                table += struct.pack(self._order + "IBBHQQ", offsets.get(name, 0), info, 0, where, value, size)
            else:
                table += struct.pack(self._order + "IIIBBH", offsets.get(name, 0), value, size, info, 0, where)
        at = len(sections)
        entsize = 24 if self.bits == 64 else 16
        sections.append(
            _Section(".symtab", table, SHT_SYMTAB, link=at + 1, info=first_global, align=8, entsize=entsize)
        )
        sections.append(_Section(".strtab", strings, SHT_STRTAB))
        if extended:
            sections.append(_Section(".symtab_shndx", indices, SHT_SYMTAB_SHNDX, link=at, align=4, entsize=4))


def _padded(data: bytes, align: int) -> bytes:
    return data + bytes(-len(data) % align)


def _strings(names: list[str]) -> tuple[bytes, dict[str, int]]:
    table, offsets = bytearray(b"\0"), {"": 0}
    for name in names:
        if name not in offsets:
            offsets[name] = len(table)
            table += name.encode("utf-8", "surrogateescape") + b"\0"
    return bytes(table), offsets
