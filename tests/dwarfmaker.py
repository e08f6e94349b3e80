# SPDX-License-Identifier: GPL-2.0-only
"""DWARF made by hand, for tests: versions 2 to 5, 32- and 64-bit, either byte order, every form.

>>> maker = DwarfMaker(version=5)
>>> unit = maker.unit()
>>> number = unit.base_type("int", 4, ATE_SIGNED)
>>> pointer = unit.add(TAG_POINTER, (AT_TYPE, FORM_REF4, number))
>>> data = maker.build()

An attribute is ``(name, form, value)``. What a value may be depends on the form: a number,
bytes, a string, or, for references, a Die. ``Raw(bytes)`` stands for any value as it is to
lie in the file, well-formed or not; for implicit_const the value goes into the
abbreviation, and for indirect it is ``(form, value)``.

Strings and addresses that a form finds in another section are put there. Units may also be
written byte for byte: ``unit.abbrev`` and ``unit.body``. ``maker.sections()`` returns the
sections, to be broken before ``maker.build(sections)`` packs them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from elfmaker import SHF_ALLOC, ElfMaker

TAG_ARRAY, TAG_CLASS, TAG_ENUMERATION, TAG_PARAMETER = 0x01, 0x02, 0x04, 0x05
TAG_BLOCK, TAG_MEMBER, TAG_POINTER, TAG_COMPILE_UNIT = 0x0B, 0x0D, 0x0F, 0x11
TAG_STRUCT, TAG_SUBROUTINE, TAG_TYPEDEF, TAG_UNION, TAG_VARARGS = 0x13, 0x15, 0x16, 0x17, 0x18
TAG_SUBRANGE, TAG_BASE, TAG_CONST, TAG_ENUMERATOR, TAG_FUNCTION = 0x21, 0x24, 0x26, 0x28, 0x2E
TAG_VARIABLE, TAG_VOLATILE, TAG_RESTRICT, TAG_NAMESPACE, TAG_PARTIAL_UNIT = 0x34, 0x35, 0x37, 0x39, 0x3C
TAG_TYPE_UNIT, TAG_LLVM_ANNOTATION, TAG_GNU_ANNOTATION = 0x41, 0x6000, 0x6001

AT_SIBLING, AT_LOCATION, AT_NAME, AT_BYTE_SIZE, AT_BIT_OFFSET, AT_BIT_SIZE = 0x01, 0x02, 0x03, 0x0B, 0x0C, 0x0D
AT_LOW_PC, AT_LANGUAGE, AT_CONST_VALUE, AT_INLINE, AT_PRODUCER, AT_UPPER_BOUND = 0x11, 0x13, 0x1C, 0x20, 0x25, 0x2F
AT_ORIGIN, AT_CALLING, AT_COUNT, AT_MEMBER_LOCATION, AT_DECLARATION = 0x31, 0x36, 0x37, 0x38, 0x3C
AT_ENCODING, AT_EXTERNAL, AT_SPECIFICATION, AT_TYPE, AT_SIGNATURE, AT_DATA_BIT_OFFSET = (
    0x3E,
    0x3F,
    0x47,
    0x49,
    0x69,
    0x6B,
)
AT_STR_OFFSETS_BASE, AT_ADDR_BASE, AT_LOCLISTS_BASE, AT_GNU_ANNOTATION = 0x72, 0x73, 0x8C, 0x2139
AT_UNKNOWN = 0x3FF0
"""An attribute of a vendor that nobody knows: readers have to skip it, whatever its form."""

FORM_ADDR, FORM_BLOCK2, FORM_BLOCK4, FORM_DATA2, FORM_DATA4, FORM_DATA8, FORM_STRING = (
    0x01,
    0x03,
    0x04,
    0x05,
    0x06,
    0x07,
    0x08,
)
FORM_BLOCK, FORM_BLOCK1, FORM_DATA1, FORM_FLAG, FORM_SDATA, FORM_STRP, FORM_UDATA = (
    0x09,
    0x0A,
    0x0B,
    0x0C,
    0x0D,
    0x0E,
    0x0F,
)
FORM_REF_ADDR, FORM_REF1, FORM_REF2, FORM_REF4, FORM_REF8, FORM_REF_UDATA = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15
FORM_INDIRECT, FORM_SEC_OFFSET, FORM_EXPRLOC, FORM_FLAG_PRESENT, FORM_STRX, FORM_ADDRX = (
    0x16,
    0x17,
    0x18,
    0x19,
    0x1A,
    0x1B,
)
FORM_REF_SUP4, FORM_STRP_SUP, FORM_DATA16, FORM_LINE_STRP, FORM_REF_SIG8, FORM_IMPLICIT_CONST = (
    0x1C,
    0x1D,
    0x1E,
    0x1F,
    0x20,
    0x21,
)
FORM_LOCLISTX, FORM_RNGLISTX, FORM_REF_SUP8 = 0x22, 0x23, 0x24
FORM_STRX1, FORM_STRX2, FORM_STRX3, FORM_STRX4, FORM_ADDRX1, FORM_ADDRX2, FORM_ADDRX3, FORM_ADDRX4 = range(0x25, 0x2D)
FORM_GNU_ADDR_INDEX, FORM_GNU_STR_INDEX, FORM_GNU_REF_ALT, FORM_GNU_STRP_ALT = 0x1F01, 0x1F02, 0x1F20, 0x1F21

ATE_BOOLEAN, ATE_FLOAT, ATE_SIGNED, ATE_SIGNED_CHAR, ATE_UNSIGNED = 2, 4, 5, 6, 7
UT_COMPILE, UT_TYPE, UT_PARTIAL, UT_SKELETON, UT_SPLIT_COMPILE = 1, 2, 3, 4, 5
LANG_C11, LANG_RUST = 0x1D, 0x1C

# Forms whose value is a number of so many bytes.
FIXED = {
    **dict.fromkeys((FORM_DATA1, FORM_FLAG, FORM_REF1), 1),
    **dict.fromkeys((FORM_DATA2, FORM_REF2), 2),
    **dict.fromkeys((FORM_DATA4, FORM_REF4, FORM_REF_SUP4), 4),
    **dict.fromkeys((FORM_DATA8, FORM_REF8, FORM_REF_SIG8, FORM_REF_SUP8), 8),
    FORM_DATA16: 16,
}
# Forms whose value is an index, by its bytes; 0: ULEB128.
STRING_INDEX = {FORM_STRX: 0, FORM_GNU_STR_INDEX: 0, FORM_STRX1: 1, FORM_STRX2: 2, FORM_STRX3: 3, FORM_STRX4: 4}
ADDRESS_INDEX = {FORM_ADDRX: 0, FORM_GNU_ADDR_INDEX: 0, FORM_ADDRX1: 1, FORM_ADDRX2: 2, FORM_ADDRX3: 3, FORM_ADDRX4: 4}
BLOCK_LENGTH = {FORM_BLOCK1: 1, FORM_BLOCK2: 2, FORM_BLOCK4: 4, FORM_BLOCK: 0, FORM_EXPRLOC: 0}
SECTION_OFFSET = (FORM_STRP, FORM_LINE_STRP, FORM_SEC_OFFSET, FORM_STRP_SUP, FORM_GNU_REF_ALT, FORM_GNU_STRP_ALT)

TEXT = 0x1000
"""Where .text starts."""

Attribute = tuple[int, int, Any]


@dataclass(frozen=True)
class Raw:
    """The bytes of an attribute as they are to lie in the file."""

    data: bytes


BASE = Raw(b"base")
"""The value of DW_AT_str_offsets_base and its like: where the unit's table is."""


def uleb(value: int, *, width: int = 0) -> bytes:
    """A ULEB128, of `width` bytes at least."""
    out = bytearray()
    while value > 0x7F or len(out) + 1 < width:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sleb(value: int) -> bytes:
    """An SLEB128."""
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value & 0x7F])


@dataclass(eq=False)
class Die:
    """A debugging information entry; ``offset`` is in its section, once the file was built."""

    tag: int
    attributes: list[Attribute]
    children: list[Die] = field(default_factory=list)
    offset: int = 0
    code: int = 0

    def add(self, tag: int, *attributes: Attribute) -> Die:
        """Add a child."""
        child = Die(tag, list(attributes))
        self.children.append(child)
        return child

    def walk(self) -> Iterator[Die]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(eq=False)
class Unit:
    """A unit; fields of its header that are None are what they have to be."""

    maker: DwarfMaker
    root: Die
    version: int
    section: str = ".debug_info"
    unit_type: int = UT_COMPILE
    signature: int = 0
    type_die: Die | None = None
    length: int | None = None
    address_size: int | None = None
    abbrev_offset: int | None = None
    body: bytes | None = None
    """The DIEs as bytes, rather than `root`."""
    offset: int = 0
    _abbrevs: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _raw_abbrevs: bytes | None = None
    _strings: list[str] = field(default_factory=list)
    _addresses: list[int] = field(default_factory=list)
    _lists: list[bytes] = field(default_factory=list)
    _bases: dict[int, int] = field(default_factory=dict)

    def add(self, tag: int, *attributes: Attribute) -> Die:
        """Add a DIE at the top level."""
        return self.root.add(tag, *attributes)

    def base_type(self, name: str, size: int, encoding: int = ATE_SIGNED) -> Die:
        """Add a DW_TAG_base_type."""
        return self.add(
            TAG_BASE,
            (AT_NAME, FORM_STRING, name),
            (AT_BYTE_SIZE, FORM_DATA1, size),
            (AT_ENCODING, FORM_DATA1, encoding),
        )

    def abbrev(self, tag: int, children: bool, *attributes: tuple[int, int] | Attribute) -> int:
        """The code of an abbreviation; attributes are (name, form), with the constant of implicit_const."""
        key = (tag, children, *(a if len(a) == 3 else (*a, None) for a in attributes))
        return self._abbrevs.setdefault(key, len(self._abbrevs) + 1)

    def set_abbrevs(self, table: bytes) -> None:
        """Use these bytes as the table of abbreviations."""
        self._raw_abbrevs = table

    def abbrev_table(self) -> bytes:
        """The bytes of the table of abbreviations."""
        if self._raw_abbrevs is not None:
            return self._raw_abbrevs
        out = bytearray()
        for (tag, children, *attributes), code in self._abbrevs.items():
            out += uleb(code) + uleb(tag) + bytes([children])
            for name, form, constant in attributes:
                out += uleb(name) + uleb(form)
                if form == FORM_IMPLICIT_CONST:
                    out += sleb(constant)
            out += b"\0\0"
        return bytes(out + b"\0")

    def _collect(self) -> None:
        """Give out codes, and entries of the tables that forms refer to."""
        for die in self.root.walk():
            for _, form, value in die.attributes:
                if form == FORM_INDIRECT and isinstance(value, tuple):
                    form, value = value
                if form in STRING_INDEX and isinstance(value, str) and value not in self._strings:
                    self._strings.append(value)
                if form in ADDRESS_INDEX and isinstance(value, int) and value not in self._addresses:
                    self._addresses.append(value)
                if form == FORM_LOCLISTX and isinstance(value, bytes) and value not in self._lists:
                    self._lists.append(value)
            forms = (
                (name, form, value) if form == FORM_IMPLICIT_CONST else (name, form)
                for name, form, value in die.attributes
            )
            die.code = self.abbrev(die.tag, bool(die.children), *forms)


@dataclass
class DwarfMaker:
    """Collects units and functions; ``build`` returns the bytes of an ELF file."""

    version: int = 5
    bits: int = 64
    big_endian: bool = False
    dwarf64: bool = False
    machine: int = 62
    units: list[Unit] = field(default_factory=list)
    functions: list[tuple[str, int, int]] = field(default_factory=list)
    extra: dict[str, bytes] = field(default_factory=dict)
    """More sections, by name."""
    _out: dict[str, bytearray] = field(default_factory=dict)

    def unit(self, *attributes: Attribute, tag: int = TAG_COMPILE_UNIT, version: int | None = None) -> Unit:
        """Add a unit; without attributes it gets the usual ones."""
        if not attributes:
            attributes = ((AT_NAME, FORM_STRING, "unit.c"), (AT_LANGUAGE, FORM_DATA1, LANG_C11))
        unit = Unit(self, Die(tag, list(attributes)), self.version if version is None else version)
        self.units.append(unit)
        return unit

    def type_unit(self, signature: int) -> Unit:
        """Add a type unit; set its `type_die`."""
        unit = self.unit(tag=TAG_TYPE_UNIT)
        unit.unit_type, unit.signature = UT_TYPE, signature
        if unit.version < 5:
            unit.section = ".debug_types"
        return unit

    def function(self, name: str, offset: int = 0, size: int = 16) -> int:
        """Add a function's symbol at this offset of .text; returns its address."""
        self.functions.append((name, offset, size))
        return TEXT + offset

    def number(self, value: int, size: int) -> bytes:
        """A number in the file's byte order."""
        return (value % (1 << 8 * size)).to_bytes(size, "big" if self.big_endian else "little")

    @property
    def offset_size(self) -> int:
        return 8 if self.dwarf64 else 4

    def length(self, size: int) -> bytes:
        """A unit length (section 7.4)."""
        return b"\xff" * 4 + self.number(size, 8) if self.dwarf64 else self.number(size, 4)

    def sections(self) -> dict[str, bytes]:
        """The debug sections."""
        self._out = {}
        for unit in self.units:
            if unit.body is None:
                unit._collect()
            self._tables(unit)
        places = {".debug_info": 0, ".debug_types": 0}
        for unit in self.units:
            unit.offset = places[unit.section]
            header = len(self._header(unit, 0, 0))
            if unit.body is None:
                size = header + len(self._dies(unit, unit.root, unit.offset + header))
            else:
                size = header + len(unit.body)
            places[unit.section] += size
        for unit in self.units:
            body = unit.body
            if body is None:
                body = self._dies(unit, unit.root, unit.offset + len(self._header(unit, 0, 0)))
            abbrevs = unit.abbrev_offset
            if abbrevs is None:
                abbrevs = len(self._section(".debug_abbrev"))
                self._section(".debug_abbrev").extend(unit.abbrev_table())
            self._section(unit.section).extend(self._header(unit, len(body), abbrevs) + body)
        return {name: bytes(data) for name, data in self._out.items()} | self.extra

    def build(self, sections: dict[str, bytes] | None = None) -> bytes:
        """The ELF file, with `sections` in place of what `sections()` returns."""
        elf = ElfMaker(bits=self.bits, big_endian=self.big_endian, machine=self.machine)
        text = elf.section(".text", bytes(0x1000), flags=SHF_ALLOC, addr=TEXT)
        for name, data in (self.sections() if sections is None else sections).items():
            elf.section(name, data)
        elf.symbol("here")
        for function, offset, size in self.functions:
            elf.symbol(function, value=TEXT + offset, size=size, info=0x12, shndx=text)
        return elf.build()

    def _section(self, name: str) -> bytearray:
        return self._out.setdefault(name, bytearray())

    def _text(self, section: str, text: str) -> int:
        """The offset of a string of a string section."""
        table = self._section(section)
        data = text.encode("utf-8", "surrogateescape") + b"\0"
        at = table.find(b"\0" + data) + 1 if table and not table.startswith(data) else 0
        if not table.startswith(data) and at == 0:
            at = len(table)
            table += data
        return at

    def _tables(self, unit: Unit) -> None:
        """The unit's part of .debug_str_offsets, .debug_addr and .debug_loclists."""
        size = self.offset_size
        address_size = unit.address_size or self.bits // 8
        if unit._strings:
            table = self._section(".debug_str_offsets")
            entries = b"".join(self.number(self._text(".debug_str", text), size) for text in unit._strings)
            if unit.version >= 5:
                table += self.length(len(entries) + 4) + self.number(5, 2) + self.number(0, 2)
            unit._bases[AT_STR_OFFSETS_BASE] = len(table)
            table += entries
        if unit._addresses:
            table = self._section(".debug_addr")
            entries = b"".join(self.number(address, address_size) for address in unit._addresses)
            if unit.version >= 5:
                table += self.length(len(entries) + 4) + self.number(5, 2) + bytes([address_size, 0])
            unit._bases[AT_ADDR_BASE] = len(table)
            table += entries
        if unit._lists:
            table = self._section(".debug_loclists")
            at = len(unit._lists) * size
            offsets = bytearray()
            for data in unit._lists:
                offsets += self.number(at, size)
                at += len(data)
            table += (
                self.length(at + 8) + self.number(5, 2) + bytes([address_size, 0]) + self.number(len(unit._lists), 4)
            )
            unit._bases[AT_LOCLISTS_BASE] = len(table)
            table += offsets + b"".join(unit._lists)

    def _header(self, unit: Unit, size: int, abbrevs: int) -> bytes:
        address_size = bytes([unit.address_size or self.bits // 8])
        where = self.number(abbrevs, self.offset_size)
        out = self.number(unit.version, 2)
        out += bytes([unit.unit_type]) + address_size + where if unit.version >= 5 else where + address_size
        if unit.unit_type == UT_TYPE:
            at = unit.type_die.offset - unit.offset if unit.type_die is not None else 0
            out += self.number(unit.signature, 8) + self.number(at, self.offset_size)
        elif unit.version >= 5 and unit.unit_type in (UT_SKELETON, UT_SPLIT_COMPILE):
            out += self.number(unit.signature, 8)
        return self.length(len(out) + size if unit.length is None else unit.length) + out

    def _dies(self, unit: Unit, die: Die, at: int) -> bytes:
        """The bytes of `die` and its children, which start at offset `at`; also notes each DIE's offset."""
        die.offset = at
        out = bytearray(uleb(die.code))
        for name, form, value in die.attributes:
            out += self._value(unit, name, form, value)
        for child in die.children:
            out += self._dies(unit, child, at + len(out))
        return bytes(out) + b"\0" * bool(die.children)

    def _value(self, unit: Unit, name: int, form: int, value: Any) -> bytes:
        if value is BASE:
            value = unit._bases.get(name, 0)
        if isinstance(value, Raw):
            return value.data
        if form in (FORM_IMPLICIT_CONST, FORM_FLAG_PRESENT):
            return b""
        if form == FORM_INDIRECT:
            return uleb(value[0]) + self._value(unit, name, value[0], value[1])
        if form == FORM_STRING:
            return str(value).encode("utf-8", "surrogateescape") + b"\0"
        if form == FORM_SDATA:
            return sleb(value)
        if form in BLOCK_LENGTH:
            size = BLOCK_LENGTH[form]
            return (self.number(len(value), size) if size else uleb(len(value))) + bytes(value)
        return self._number(unit, form, self._resolve(unit, form, value))

    def _resolve(self, unit: Unit, form: int, value: Any) -> int:
        """The number that stands in the DIE."""
        if isinstance(value, Die):
            return value.offset if form == FORM_REF_ADDR else value.offset - unit.offset
        if isinstance(value, str):
            if form in STRING_INDEX:
                return unit._strings.index(value)
            return self._text(".debug_line_str" if form == FORM_LINE_STRP else ".debug_str", value)
        if isinstance(value, bytes):
            if form == FORM_LOCLISTX:
                return unit._lists.index(value)
            section = self._section(".debug_loclists" if unit.version >= 5 else ".debug_loc")
            if value not in section:
                section += value
            return section.find(value)
        if form in ADDRESS_INDEX:
            return unit._addresses.index(value)
        return int(value)

    def _number(self, unit: Unit, form: int, value: int) -> bytes:
        address_size = unit.address_size or self.bits // 8
        if form in FIXED:
            return self.number(value, FIXED[form])
        if form in SECTION_OFFSET:
            return self.number(value, self.offset_size)
        if form == FORM_ADDR:
            return self.number(value, address_size)
        if form == FORM_REF_ADDR:
            return self.number(value, address_size if unit.version < 3 else self.offset_size)
        if form == FORM_REF_UDATA:
            return uleb(value, width=5)  # the same size whatever the reference turns out to be
        size = {**STRING_INDEX, **ADDRESS_INDEX}.get(form, 0)
        return self.number(value, size) if size else uleb(value)


# BTF, as far as tests read it

KIND_NAMES = (
    *("VOID", "INT", "PTR", "ARRAY", "STRUCT", "UNION", "ENUM", "FWD", "TYPEDEF", "VOLATILE", "CONST", "RESTRICT"),
    *("FUNC", "FUNC_PROTO", "VAR", "DATASEC", "FLOAT", "DECL_TAG", "TYPE_TAG", "ENUM64"),
)


@dataclass(frozen=True)
class BtfType:
    """One type of BTF: ``rows`` are what follows the fixed part, in words, with names in place of their offsets."""

    kind: str
    name: str
    size_or_type: int
    flag: bool
    rows: tuple[Any, ...]


def read_btf(data: bytes, *, big_endian: bool = False) -> list[BtfType]:
    """The types of a BTF section; entry 0 is void. Raises AssertionError or struct.error if it is malformed."""
    order = ">" if big_endian else "<"
    magic, version, _, header, type_at, type_size, string_at, string_size = struct.unpack_from(order + "HBBIIIII", data)
    assert (magic, version, header) == (0xEB9F, 1, 24)
    strings = data[header + string_at : header + string_at + string_size]
    assert strings[:1] == b"\0"
    assert strings[-1:] == b"\0"
    assert len(data) == header + max(type_at + type_size, string_at + string_size)

    def text(at: int) -> str:
        assert at < len(strings)
        return strings[at : strings.index(b"\0", at)].decode("utf-8", "surrogateescape")

    def rows(at: int, kind: str, vlen: int) -> tuple[list[tuple[Any, ...]], int]:
        words = {"STRUCT": 3, "UNION": 3, "ENUM64": 3, "DATASEC": 3, "ENUM": 2, "FUNC_PROTO": 2}.get(kind, 0)
        once = {"INT": 1, "ARRAY": 3, "VAR": 1, "DECL_TAG": 1}.get(kind, 0)
        if once:
            return [struct.unpack_from(f"{order}{once}I", data, at)], at + 4 * once
        values = [struct.unpack_from(f"{order}{words}I", data, at + 4 * words * i) for i in range(vlen if words else 0)]
        if kind != "DATASEC":
            values = [(text(row[0]), *row[1:]) for row in values]
        return values, at + 4 * words * len(values)

    types = [BtfType("VOID", "", 0, False, ())]
    at, end = header + type_at, header + type_at + type_size
    while at < end:
        name, info, value = struct.unpack_from(order + "III", data, at)
        kind = KIND_NAMES[info >> 24 & 0x1F]
        values, at = rows(at + 12, kind, info & 0xFFFF)
        types.append(BtfType(kind, text(name), value, bool(info >> 31), tuple(values)))
    assert at == end
    for entry in types:
        if entry.kind in ("PTR", "TYPEDEF", "VOLATILE", "CONST", "RESTRICT", "FUNC", "FUNC_PROTO", "VAR", "DECL_TAG"):
            assert entry.size_or_type < len(types)
        if entry.kind in ("STRUCT", "UNION", "FUNC_PROTO"):
            assert all(row[1] < len(types) for row in entry.rows)
    return types
