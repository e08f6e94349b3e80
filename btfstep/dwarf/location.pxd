# SPDX-License-Identifier: GPL-2.0-only
"""Location expressions and lists (DWARF 5, sections 2.5 and 2.6), as far as BTF asks.

Two questions: at which address is this variable, and in which register does
this parameter arrive.
"""

from libc.stdint cimport uint16_t, uint64_t

from btfstep.dwarf.sections cimport Sections
from btfstep.dwarf.unit cimport Unit


cdef struct Location:
    # A DW_AT_location as the DIE holds it.
    uint64_t value  # offset of the block in the unit's section, or the list's
    uint64_t length  # of the block
    uint16_t form


cdef struct ParameterPlace:
    # What the locations of one parameter say of how it is passed.
    int register  # DW_OP_reg0 ... DW_OP_reg31; -1: not known
    bint constant  # its first location is a constant
    bint stack  # its first location is on the stack
    # For an aggregate that arrives in pieces: a bit for the offset of each
    # piece within the first and within the second register.
    uint64_t first_pieces
    uint64_t second_pieces
    uint64_t work  # bytes of the location list that were read


cdef bint variable_address(
    const Sections *sections, const Unit *unit, const Location *location, uint64_t *address
) noexcept nogil

cdef void parameter_place(
    const Sections *sections, const Unit *unit, const Location *location, uint16_t byte_size, bint two_registers,
    ParameterPlace *place
) noexcept nogil

cdef bint block_constant(
    const Sections *sections, const Location *location, int section, uint64_t *value
) noexcept nogil
