# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only: every offset and index is checked against its table's size first)
"""Relocates the debug sections of relocatable files (ET_REL: ``.o``, ``.ko``).

Reads SHT_REL and SHT_RELA sections and the symbol table that they name, and
changes a copy of the section's bytes; nothing of the file's is written to.  Of
a large module's 100,000 relocations, nearly all add the offset of a string to
nothing: each costs a few loads, and the loop runs without the GIL.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from btfstep.dwarf.cursor cimport load_u32

from btfstep.elf.constants import (
    ET_REL, SHF_ALLOC, SHT_REL, SHT_RELA, SHT_SYMTAB, SHT_SYMTAB_SHNDX, machine_name,
)
from btfstep.elf.relocation_types import OPERATIONS, TYPE_LIMIT, relocation_name
from btfstep.errors import FormatError

cdef enum:
    MAX_TYPES = 2048  # TYPE_LIMIT
    MAX_ULEB128 = 16  # bytes; ten hold any number
    EM_MIPS_MACHINE = 8

cdef enum:  # sections that symbols are in besides real ones
    UNDEFINED = 0
    LORESERVE = 0xFF00
    ABSOLUTE = 0xFFF1
    COMMON = 0xFFF2
    XINDEX = 0xFFFF

cdef enum:  # an operation, see relocation_types.py
    IGNORE = 1
    SET = 2
    ADD = 3
    SUBTRACT = 4
    ULEB128 = 0
    BITS6 = 6

cdef enum Outcome:
    FINE
    BAD_TYPE
    BAD_OFFSET
    BAD_SYMBOL
    BAD_SECTION
    BAD_NUMBER


cdef struct Symbols:
    const uint8_t *entries
    uint64_t count
    const uint8_t *indices  # SHT_SYMTAB_SHNDX
    uint64_t nr_indices


cdef inline uint64_t load_u64(const uint8_t *p, bint big) noexcept nogil:
    if big:
        return <uint64_t>load_u32(p + 4, True) | <uint64_t>load_u32(p, True) << 32
    return <uint64_t>load_u32(p, False) | <uint64_t>load_u32(p + 4, False) << 32


cdef inline uint64_t load_field(const uint8_t *p, unsigned int width, bint big) noexcept nogil:
    cdef uint64_t value = 0
    cdef unsigned int i
    if width == 4:
        return load_u32(p, big)
    for i in range(width):
        value |= <uint64_t>p[width - 1 - i if big else i] << 8 * i
    return value


cdef inline void store_field(uint8_t *p, unsigned int width, bint big, uint64_t value) noexcept nogil:
    cdef unsigned int i
    if width == 4 and not big:
        p[0] = <uint8_t>value
        p[1] = <uint8_t>(value >> 8)
        p[2] = <uint8_t>(value >> 16)
        p[3] = <uint8_t>(value >> 24)
        return
    for i in range(width):
        p[width - 1 - i if big else i] = <uint8_t>(value >> 8 * i)


cdef uint64_t load_uleb(const uint8_t *p, uint64_t length) noexcept nogil:
    cdef uint64_t value = 0
    cdef uint64_t i
    for i in range(min(length, 10)):
        value |= <uint64_t>(p[i] & 0x7F) << 7 * i
    return value


cdef void store_uleb(uint8_t *p, uint64_t length, uint64_t value) noexcept nogil:
    """Write a number into `length` bytes; what does not fit is lost, as in any other field."""
    cdef uint64_t i
    for i in range(length):
        p[i] = <uint8_t>(value & 0x7F) | (0x80 if i + 1 < length else 0)
        value >>= 7


cdef class Relocator:
    """Applies the relocations of `image`, an ElfImage, to the contents of its debug sections.

    ``relocate(name, contents)`` returns the bytes of the section of this name,
    relocated; `contents` are those that ``image.debug_section(name)`` gave.

    `placement` says where sections are.  Symbols count as the placed address of
    their section and their value; those in no section as 0, as do common ones.
    A field that refers to an undefined symbol keeps what it holds.

    Raises FormatError for malformed tables, and for types of relocation, or
    machines, that are not supported.
    """

    cdef readonly object placement
    cdef readonly str path
    cdef object _image
    cdef dict _sections  # by index of the section to relocate: what relocates it
    cdef dict _symbols  # by index: buffers of a symbol table and its extended indices
    cdef uint64_t[::1] _addresses
    cdef uint8_t operations[MAX_TYPES]
    cdef bint supported, is64, big, split_info

    def __init__(self, image not None, placement not None):
        self._image = image
        self.path = image.path
        self.is64 = image.is64
        self.big = image.big_endian
        self.split_info = image.is64 and image.machine == EM_MIPS_MACHINE
        self.placement = placement
        self._sections = {}
        self._symbols = {}
        if image.type != ET_REL:
            return
        for section in image.sections:
            if section.type in (SHT_REL, SHT_RELA) and section.size:
                self._sections.setdefault(section.info, []).append(section)
        self._use_operations(OPERATIONS.get(image.machine))
        self._use_addresses()

    def _use_operations(self, operations):
        assert TYPE_LIMIT == MAX_TYPES
        memset(self.operations, 0, sizeof(self.operations))
        self.supported = operations is not None
        for operation, types in (operations or {}).items():
            for type in types:
                self.operations[<unsigned int>type % MAX_TYPES] = operation

    def _use_addresses(self):
        from array import array

        mask = (1 << 64) - 1
        bias = self.placement.bias
        self._addresses = array("Q", [
            address + bias & mask if section.flags & SHF_ALLOC else 0
            for section, address in zip(self._image.sections, self.placement.addresses, strict=True)
        ])

    def __call__(self, str name not None, contents):
        section = self._image.section(name)
        if section is None:
            section = self._image.section(".z" + name[1:])
        tables = self._sections.get(section.index) if section is not None else None
        if tables is None or len(contents) == 0:
            return contents
        # Headers may share bytes, so a small file can ask for a great many relocations.
        if sum([table.size for table in tables]) > len(self._image.data):
            raise FormatError(f"relocations of {section.name} are larger than the file", path=self.path)
        relocated = bytearray(contents)
        for table in tables:
            self._apply(table, section.name, relocated)
        return relocated

    cdef int _apply(self, object table, str target, bytearray relocated) except -1:
        """Apply the relocations of one section to the bytes of another."""
        cdef const uint8_t[::1] entries, symtab, shndx
        cdef uint8_t[::1] data = relocated
        cdef uint64_t at = 0
        cdef uint64_t offset = 0
        cdef uint32_t type = 0
        cdef Outcome outcome
        cdef Symbols symbols
        cdef bint rela = table.type == SHT_RELA
        cdef unsigned int size = (24 if rela else 16) if self.is64 else (12 if rela else 8)
        if not self.supported:
            raise self._error(
                f"relocation of debug information is not supported for {machine_name(self._image.machine)}", table
            )
        raw = self._image.contents(table)
        if table.entsize not in (0, size) or len(raw) % size:
            raise self._error(f"is not made of relocations of {size} bytes", table)
        if len(raw) == 0:
            return 0
        entries = raw
        memset(&symbols, 0, sizeof(Symbols))
        buffers = self._symbol_table(table)
        if len(buffers[0]):
            symtab = buffers[0]
            symbols.entries = &symtab[0]
            symbols.count = <uint64_t>symtab.shape[0] // (24 if self.is64 else 16)
        if len(buffers[1]):
            shndx = buffers[1]
            symbols.indices = &shndx[0]
            symbols.nr_indices = <uint64_t>shndx.shape[0] // 4
        with nogil:
            outcome = self.relocate(
                &entries[0], <uint64_t>entries.shape[0], rela, &symbols, &data[0], <uint64_t>data.shape[0], &at
            )
        if outcome == FINE:
            return 0
        self.read_entry(&entries[at], &offset, &type)
        if outcome == BAD_TYPE:
            raise FormatError(
                f"relocation type {relocation_name(self._image.machine, type)} in debug information is not supported",
                path=self.path, section=target, offset=offset,
            )
        if outcome == BAD_OFFSET:
            raise self._error(f"relocation of offset {offset:#x}, past the end of {target}", table, at)
        if outcome == BAD_NUMBER:
            raise FormatError("relocated LEB128 number without an end", path=self.path, section=target, offset=offset)
        if outcome == BAD_SYMBOL:
            raise self._error("relocation by a symbol that does not exist", table, at)
        raise self._error("relocation by a symbol in a section that does not exist", table, at)

    def _error(self, str message, table, offset=None):
        return FormatError(message, path=self.path, section=table.name, offset=offset)

    def _symbol_table(self, table):
        """The contents of the symbol table that a relocation section names, and its extended section indices."""
        found = self._symbols.get(table.link)
        if found is not None:
            return found
        sections = self._image.sections
        if not table.link:
            return b"", b""
        if table.link >= len(sections) or sections[table.link].type != SHT_SYMTAB:
            raise self._error(f"names section {table.link} as its symbol table, which is none", table)
        indices = b""
        for section in sections:
            if section.type == SHT_SYMTAB_SHNDX and section.link == table.link:
                indices = self._image.contents(section)
                break
        found = self._symbols[table.link] = self._image.contents(sections[table.link]), indices
        return found

    cdef inline uint32_t read_entry(self, const uint8_t *p, uint64_t *offset, uint32_t *type) noexcept nogil:
        """Read a relocation's offset and type, return the index of its symbol."""
        cdef uint64_t info
        if not self.is64:
            offset[0] = load_u32(p, self.big)
            info = load_u32(p + 4, self.big)
            type[0] = info & 0xFF
            return <uint32_t>(info >> 8)
        offset[0] = load_u64(p, self.big)
        if self.split_info:
            # Not one number, so bytes keep their places in either order: a symbol, a
            # special symbol, and three types to be applied one after the other.
            type[0] = p[15] | <uint32_t>p[14] << 8 | <uint32_t>p[13] << 16 | <uint32_t>p[12] << 24
            return load_u32(p + 8, self.big)
        info = load_u64(p + 8, self.big)
        type[0] = <uint32_t>info
        return <uint32_t>(info >> 32)

    cdef inline Outcome read_symbol(
        self, const Symbols *symbols, uint32_t index, bint *defined, uint64_t *value
    ) noexcept nogil:
        """The value of a symbol; `defined` says whether it has one."""
        cdef const uint8_t *p
        cdef uint32_t section
        if index >= symbols.count:
            return BAD_SYMBOL
        if self.is64:
            p = symbols.entries + <uint64_t>index * 24
            section = p[6] << 8 | p[7] if self.big else p[7] << 8 | p[6]
            value[0] = load_u64(p + 8, self.big)
        else:
            p = symbols.entries + <uint64_t>index * 16
            section = p[14] << 8 | p[15] if self.big else p[15] << 8 | p[14]
            value[0] = load_u32(p + 4, self.big)
        if section >= LORESERVE:
            if section == ABSOLUTE:
                return FINE
            if section == COMMON:
                value[0] = 0
                return FINE
            if section != XINDEX or index >= symbols.nr_indices:
                return BAD_SECTION
            section = load_u32(symbols.indices + <uint64_t>index * 4, self.big)
        if section == UNDEFINED:
            defined[0] = False
            return FINE
        if section >= <uint64_t>self._addresses.shape[0]:
            return BAD_SECTION
        value[0] += self._addresses[section]
        return FINE

    cdef Outcome relocate(
        self, const uint8_t *entries, uint64_t size, bint rela, const Symbols *symbols,
        uint8_t *data, uint64_t data_size, uint64_t *at
    ) noexcept nogil:
        """Apply `size` bytes of relocations; `at` is where the first bad one is."""
        cdef unsigned int step = (24 if rela else 16) if self.is64 else (12 if rela else 8)
        cdef const uint8_t *p
        cdef uint64_t offset = 0
        cdef uint64_t value, width, length
        cdef uint32_t type = 0
        cdef uint32_t symbol
        cdef unsigned int what, field
        cdef bint defined
        cdef Outcome outcome
        at[0] = 0
        while at[0] < size:
            p = entries + at[0]
            symbol = self.read_entry(p, &offset, &type)
            if type >= MAX_TYPES:
                return BAD_TYPE
            what = self.operations[type] >> 4
            field = self.operations[type] & 15
            if what == IGNORE:
                at[0] += step
                continue
            if what == 0:
                return BAD_TYPE
            value = 0
            if symbol:  # number 0 stands for the start of a debug section whose symbol was stripped
                defined = True
                outcome = self.read_symbol(symbols, symbol, &defined, &value)
                if outcome != FINE:
                    return outcome
                if not defined:
                    at[0] += step
                    continue
            if rela:
                value += load_u64(p + 16, self.big) if self.is64 else <uint64_t><int32_t>load_u32(p + 8, self.big)
            width = 1 if field == BITS6 or field == ULEB128 else field
            if offset > data_size or data_size - offset < width:
                return BAD_OFFSET
            if field == ULEB128:
                length = 0
                while offset + length < data_size and data[offset + length] >= 0x80 and length < MAX_ULEB128:
                    length += 1
                length += 1
                if offset + length > data_size or length > MAX_ULEB128:
                    return BAD_NUMBER
                if what != SET or not rela:
                    value = load_uleb(data + offset, length) + (0 - value if what == SUBTRACT else value)
                store_uleb(data + offset, length, value)
            else:
                if what != SET or not rela:
                    value = load_field(data + offset, width, self.big) + (0 - value if what == SUBTRACT else value)
                if field == BITS6:
                    value = (value & 0x3F) | (data[offset] & 0xC0)
                store_field(data + offset, width, self.big, value)
            at[0] += step
        return FINE
