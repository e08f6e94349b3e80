# SPDX-License-Identifier: GPL-2.0-only
"""Unit headers (DWARF 5, section 7.5.1) and what a unit's first DIE says of the rest."""

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from btfstep.dwarf.abbrev cimport AbbrevTable, Die
from btfstep.dwarf.cursor cimport Cursor
from btfstep.dwarf.sections cimport DebugSections, Fault, Sections


cdef struct Unit:
    uint64_t offset  # of the header, in `section`
    uint64_t dies  # of the first DIE
    uint64_t end
    uint64_t abbrev_offset
    uint64_t signature  # type units
    uint64_t type_offset  # type units: of the type's DIE, from the header
    int section  # SEC_INFO or SEC_TYPES
    uint16_t version
    uint8_t unit_type
    uint8_t address_size
    uint8_t offset_size
    # from the unit's DIE, see `unit_start`
    uint64_t str_offsets_base
    uint64_t addr_base
    uint64_t loclists_base
    uint32_t language
    uint32_t tag


cdef int unit_read(const Sections *sections, int section, uint64_t offset, Unit *unit, Fault *fault) noexcept nogil

cdef int unit_start(
    const Sections *sections, Unit *unit, AbbrevTable *abbrevs, Cursor *c, Die *die, Fault *fault
) noexcept nogil

cdef const uint8_t *die_text(
    const Sections *sections, const Unit *unit, const Die *die, unsigned int slot, uint64_t *str_offset
) noexcept nogil

cdef bint die_address(
    const Sections *sections, const Unit *unit, uint16_t form, uint64_t value, uint64_t *address
) noexcept nogil

cdef bint unit_address(const Sections *sections, const Unit *unit, uint64_t index, uint64_t *address) noexcept nogil

cdef bint die_number(const Die *die, unsigned int slot, uint64_t *value) noexcept nogil


cdef struct Signature:
    uint64_t signature
    uint32_t unit  # index


@cython.final
cdef class UnitList:
    cdef readonly DebugSections sections
    cdef Unit *units
    cdef readonly uint32_t count
    cdef uint32_t cap
    cdef readonly bint has_type_units
    cdef Signature *signatures  # of type units, sorted
    cdef uint32_t nr_signatures, signatures_cap
    cdef int append(self, const Unit *unit) except -1
    cdef void release(self, uint32_t first, uint32_t end) noexcept nogil
    cdef const Unit *type_unit(self, uint64_t signature) noexcept nogil


cdef bint uses_ref_addr(const Sections *sections) noexcept nogil
