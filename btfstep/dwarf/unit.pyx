# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False
# (no Python sequence is indexed here; the array of units is indexed below its count)
"""Finds the units of a file and reads their headers; `unit.pxd` says what a unit is."""

from libc.stdint cimport uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free, qsort

from btfstep.btf.memory cimport reserve
from btfstep.dwarf.abbrev cimport (
    SLOT_ADDR_BASE, SLOT_LANGUAGE, SLOT_LOCLISTS_BASE, SLOT_STR_OFFSETS_BASE, AbbrevTable, Die, abbrev_load, has,
    read_die,
)
from btfstep.dwarf.constants cimport *
from btfstep.dwarf.cursor cimport (
    Cursor, cursor_left, cursor_set, cursor_tell, read_string, read_u8, read_u16, read_u32, read_u64,
    read_uint, read_uleb, skip_leb,
)
from btfstep.dwarf.sections cimport (
    SEC_ABBREV, SEC_ADDR, SEC_INFO, SEC_LINE_STR, SEC_STR, SEC_STR_OFFSETS, SEC_TYPES, DebugSections, Fault,
    Sections, fail,
)


cdef enum:
    MAX_BATCH = 1024  # units


cdef int unit_read(const Sections *sections, int section, uint64_t offset, Unit *unit, Fault *fault) noexcept nogil:
    """Read the unit header at `offset` of `section`."""
    cdef Cursor c
    cdef uint64_t length
    cursor_set(&c, sections.view[section].data, sections.view[section].size, offset, sections.big)
    unit.offset = offset
    unit.section = section
    unit.signature = unit.type_offset = 0
    unit.offset_size = 4
    length = read_u32(&c)
    if length == <uint64_t>0xFFFFFFFF:
        length = read_u64(&c)
        unit.offset_size = 8
    elif length >= <uint64_t>0xFFFFFFF0:
        return fail(fault, "unit length is a reserved value", section, offset)
    if c.failed or length > cursor_left(&c):
        return fail(fault, "unit runs past the end of the section", section, offset)
    unit.end = cursor_tell(&c) + length
    unit.version = read_u16(&c)
    if unit.version < 2 or unit.version > 5:
        return fail(fault, "unit of an unknown DWARF version", section, offset)
    if unit.version >= 5:
        unit.unit_type = read_u8(&c)
        unit.address_size = read_u8(&c)
        unit.abbrev_offset = read_uint(&c, unit.offset_size)
        if unit.unit_type == DW_UT_type or unit.unit_type == DW_UT_split_type:
            unit.signature = read_u64(&c)
            unit.type_offset = read_uint(&c, unit.offset_size)
        elif unit.unit_type == DW_UT_skeleton or unit.unit_type == DW_UT_split_compile:
            read_u64(&c)  # dwo id
        elif unit.unit_type != DW_UT_compile and unit.unit_type != DW_UT_partial:
            return fail(fault, "unit of an unknown type", section, offset)
    else:
        unit.abbrev_offset = read_uint(&c, unit.offset_size)
        unit.address_size = read_u8(&c)
        unit.unit_type = DW_UT_compile
        if section == SEC_TYPES:
            unit.unit_type = DW_UT_type
            unit.signature = read_u64(&c)
            unit.type_offset = read_uint(&c, unit.offset_size)
    if c.failed or cursor_tell(&c) > unit.end:
        return fail(fault, "unit header runs past the end of the unit", section, offset)
    if unit.address_size != 4 and unit.address_size != 8 and unit.address_size != 2 and unit.address_size != 1:
        return fail(fault, "unit with an address size that no machine has", section, offset)
    unit.dies = cursor_tell(&c)
    return 0


cdef int unit_start(
    const Sections *sections, Unit *unit, AbbrevTable *abbrevs, Cursor *c, Die *die, Fault *fault
) noexcept nogil:
    """Load the unit's abbreviations and read its first DIE; `c` is left behind it.

    Returns 1, or 0 for a unit without any DIE; -1 on a fault.
    """
    unit.tag = unit.language = 0
    # The defaults of DWARF 5 (section 7.26 to 7.29): behind the header of the first contribution.
    unit.str_offsets_base = unit.addr_base = unit.loclists_base = 0
    if abbrev_load(
        abbrevs, sections, unit.abbrev_offset, <uint8_t>unit.version, unit.address_size, unit.offset_size, fault
    ) < 0:
        return -1
    cursor_set(c, sections.view[unit.section].data, unit.end, unit.dies, sections.big)
    if unit.dies == unit.end:
        return 0
    if not read_die(c, abbrevs, unit.offset, die):
        return fail(fault, "DIE is cut short or has no abbreviation", unit.section, die.offset)
    if die.tag == 0:
        return 0
    unit.tag = die.tag
    unit.language = <uint32_t>die.value[SLOT_LANGUAGE] if has(die, SLOT_LANGUAGE) else 0
    if unit.version >= 5:
        unit.str_offsets_base = 8 if unit.offset_size == 4 else 16
        unit.addr_base = unit.str_offsets_base
        unit.loclists_base = 12 if unit.offset_size == 4 else 20
    if has(die, SLOT_STR_OFFSETS_BASE):
        unit.str_offsets_base = die.value[SLOT_STR_OFFSETS_BASE]
    if has(die, SLOT_ADDR_BASE):
        unit.addr_base = die.value[SLOT_ADDR_BASE]
    if has(die, SLOT_LOCLISTS_BASE):
        unit.loclists_base = die.value[SLOT_LOCLISTS_BASE]
    return 1


cdef bint table_entry(
    const Sections *sections, int section, uint64_t base, uint64_t index, unsigned int size, uint64_t *value
) noexcept nogil:
    """Entry `index` of a table of `size`-byte numbers at `base` of `section`; False past its end."""
    cdef Cursor c
    cdef uint64_t room = sections.view[section].size
    if base > room or index >= (room - base) // size:
        return False
    cursor_set(&c, sections.view[section].data, room, base + index * size, sections.big)
    value[0] = read_uint(&c, size)
    return not c.failed


cdef const uint8_t *die_text(
    const Sections *sections, const Unit *unit, const Die *die, unsigned int slot, uint64_t *str_offset
) noexcept nogil:
    """The NUL-terminated string of a slot; NULL when there is none there.

    For a string in .debug_str `str_offset` is its offset there, and the string
    itself has not been looked at; otherwise it is all ones.
    """
    cdef uint16_t form = die.form[slot]
    cdef uint64_t at = die.value[slot]
    cdef int section
    cdef Cursor c
    str_offset[0] = ~<uint64_t>0
    if form == DW_FORM_string:
        section = unit.section
    elif form == DW_FORM_line_strp:
        section = SEC_LINE_STR
    elif form == DW_FORM_strp:
        section = SEC_STR
    elif (
        form == DW_FORM_strx or form == DW_FORM_strx1 or form == DW_FORM_strx2 or form == DW_FORM_strx3
        or form == DW_FORM_strx4 or form == DW_FORM_GNU_str_index
    ):
        if not table_entry(sections, SEC_STR_OFFSETS, unit.str_offsets_base, at, unit.offset_size, &at):
            return NULL
        section = SEC_STR
    else:
        return NULL
    if at >= sections.view[section].size:
        return NULL
    if section == SEC_STR:
        str_offset[0] = at
        return sections.view[SEC_STR].data + at
    cursor_set(&c, sections.view[section].data, sections.view[section].size, at, sections.big)
    return read_string(&c)


cdef bint unit_address(const Sections *sections, const Unit *unit, uint64_t index, uint64_t *address) noexcept nogil:
    """Entry `index` of the unit's table in .debug_addr; False when it has none."""
    return table_entry(sections, SEC_ADDR, unit.addr_base, index, unit.address_size, address)


cdef bint die_address(
    const Sections *sections, const Unit *unit, uint16_t form, uint64_t value, uint64_t *address
) noexcept nogil:
    """The address that an attribute of class address holds; False for other classes."""
    if form == DW_FORM_addr:
        address[0] = value
        return True
    if (
        form == DW_FORM_addrx or form == DW_FORM_addrx1 or form == DW_FORM_addrx2 or form == DW_FORM_addrx3
        or form == DW_FORM_addrx4 or form == DW_FORM_GNU_addr_index
    ):
        return unit_address(sections, unit, value, address)
    return False


cdef bint die_number(const Die *die, unsigned int slot, uint64_t *value) noexcept nogil:
    """An attribute of class constant or flag; False when it is absent or of another class."""
    cdef uint16_t form = die.form[slot]
    if not (die.mask >> slot) & 1:
        return False
    if (
        form == DW_FORM_data1 or form == DW_FORM_data2 or form == DW_FORM_data4 or form == DW_FORM_data8
        or form == DW_FORM_sdata or form == DW_FORM_udata or form == DW_FORM_implicit_const
        or form == DW_FORM_flag or form == DW_FORM_flag_present
    ):
        value[0] = die.value[slot]
        return True
    return False


cdef int by_signature(const void *a, const void *b) noexcept nogil:
    """Of equal ones, the first of the file first."""
    cdef const Signature *x = <const Signature *>a
    cdef const Signature *y = <const Signature *>b
    if x.signature != y.signature:
        return -1 if x.signature < y.signature else 1
    return (x.unit > y.unit) - (x.unit < y.unit)


cdef class UnitList:
    """The units of .debug_types, if any, and then of .debug_info, in file order.

    Raises FormatError when a header is malformed.
    """

    def __cinit__(self, DebugSections sections not None):
        cdef Unit unit
        cdef Fault fault
        cdef int section
        cdef uint64_t offset
        self.sections = sections
        for section in (SEC_TYPES, SEC_INFO):
            offset = 0
            while offset < sections.c.view[section].size:
                if unit_read(&sections.c, section, offset, &unit, &fault) < 0:
                    sections.raise_fault(&fault)
                if unit.unit_type == DW_UT_type:
                    self.has_type_units = True
                self.append(&unit)
                offset = unit.end
        if self.nr_signatures:
            qsort(self.signatures, self.nr_signatures, sizeof(Signature), by_signature)

    def __dealloc__(self):
        free(self.units)
        free(self.signatures)

    cdef int append(self, const Unit *unit) except -1:
        if reserve(<void **>&self.units, &self.cap, <uint64_t>self.count + 1, sizeof(Unit)) < 0:
            raise MemoryError
        if unit.unit_type == DW_UT_type:
            if reserve(
                <void **>&self.signatures, &self.signatures_cap, <uint64_t>self.nr_signatures + 1, sizeof(Signature)
            ) < 0:
                raise MemoryError
            self.signatures[self.nr_signatures].signature = unit.signature
            self.signatures[self.nr_signatures].unit = self.count
            self.nr_signatures += 1
        self.units[self.count] = unit[0]
        self.count += 1
        return 0

    cdef const Unit *type_unit(self, uint64_t signature) noexcept nogil:
        """The first type unit of this signature, or NULL."""
        cdef uint32_t low = 0
        cdef uint32_t high = self.nr_signatures
        cdef uint32_t middle
        while low < high:
            middle = (low + high) // 2
            if self.signatures[middle].signature < signature:
                low = middle + 1
            else:
                high = middle
        if low < self.nr_signatures and self.signatures[low].signature == signature:
            return &self.units[self.signatures[low].unit]
        return NULL

    cdef void release(self, uint32_t first, uint32_t end) noexcept nogil:
        """Let go of the bytes of units that have been read."""
        cdef const Unit *last = &self.units[end - 1]
        if first < end and self.units[first].section == last.section:
            self.sections.release(last.section, self.units[first].offset, last.end)

    def batches(self, uint64_t size):
        """Runs of neighbouring units, as (first, count), each of about `size` bytes of DIEs."""
        cdef uint32_t first = 0
        cdef uint32_t i
        cdef uint64_t total = 0
        result = []
        for i in range(self.count):
            total += self.units[i].end - self.units[i].offset
            # Tiny units: each has a record of its own, which waits for its turn.
            if total >= size or i + 1 - first >= MAX_BATCH:
                result.append((first, i + 1 - first))
                first, total = i + 1, 0
        if first < self.count:
            result.append((first, self.count - first))
        return result


cdef bint uses_ref_addr(const Sections *sections) noexcept nogil:
    """Whether any abbreviation of the file refers to DIEs of other units.

    The tables are read one after another, as linkers lay them out; what does
    not parse ends the search, and is reported when a unit uses it.
    """
    cdef Cursor c
    cdef uint64_t attribute, form
    cursor_set(&c, sections.view[SEC_ABBREV].data, sections.view[SEC_ABBREV].size, 0, sections.big)
    while cursor_left(&c) and not c.failed:
        if read_uleb(&c) == 0:
            continue
        skip_leb(&c)
        read_u8(&c)
        while not c.failed:
            attribute = read_uleb(&c)
            form = read_uleb(&c)
            if attribute == 0 and form == 0:
                break
            if form == DW_FORM_ref_addr:
                return True
            if form == DW_FORM_implicit_const:
                skip_leb(&c)
    return False
