# SPDX-License-Identifier: GPL-2.0-only
"""What all workers of one run share and none of them changes."""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from btfstep.btf.strings cimport StringPool
from btfstep.dwarf.sections cimport DebugSections
from btfstep.dwarf.unit cimport UnitList
from btfstep.elf.symbols cimport Symbol


cdef struct Options:
    bint floats
    bint type_tags
    bint decl_tags
    bint enum64
    bint variables
    bint force  # skip variables that BTF cannot name, rather than fail
    bint true_signature
    bint verbose


cdef struct Machine:
    # How this machine passes parameters, as far as it is known.
    int nr_registers  # parameters in registers; 0: not known
    int registers[8]  # DW_OP_reg0 ...; -1: not known
    bint two_registers  # an aggregate may take two
    unsigned int address_size


@cython.final
cdef class EncodeContext:
    cdef readonly DebugSections sections
    cdef readonly UnitList units
    cdef readonly StringPool strings
    cdef Options options
    cdef Machine machine
    cdef uint32_t *function_of  # string -> 1 + index of the ELF function of this name
    cdef uint32_t nr_function_of
    cdef uint32_t *function_names  # index of the ELF function -> string
    cdef readonly bint merge_units
    cdef readonly bint has_skeletons  # set by workers: some unit's DIEs are in another file
    # Where variables live: address `range_start[i]` and up, to the next one,
    # belongs to section `range_section[i]` (0: to none).
    cdef uint64_t *range_start
    cdef uint32_t *range_section
    cdef uint32_t nr_ranges
    cdef uint8_t *section_wanted  # by section index
    cdef uint64_t *section_address
    cdef uint32_t nr_sections
    # Open addressing: (section << 32 | string + 1) of each object symbol in a wanted section
    cdef uint64_t *objects
    cdef uint64_t objects_mask
    cdef uint32_t *skip_languages
    cdef uint32_t nr_skip_languages
    cdef uint32_t *only_languages
    cdef uint32_t nr_only_languages
    cdef bytes cu_exclude

    cdef bint wants(self, const Symbol *symbol) noexcept nogil
    cdef uint32_t find_section(self, uint64_t address) noexcept nogil
    cdef bint lacks_function(self, uint32_t name) noexcept nogil
    cdef bint has_object(self, uint32_t section, uint32_t name) noexcept nogil
    cdef bint takes_language(self, uint32_t language) noexcept nogil
