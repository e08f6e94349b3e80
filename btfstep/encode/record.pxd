# SPDX-License-Identifier: GPL-2.0-only
"""What a worker makes of one compilation unit, and the merge takes from it.

A record owns its arrays and is used again for another unit once it was
merged.  Type ids in it are local: 1 to `nr_types`, in the order in which
pahole numbers the unit's types; 0 is void.
"""

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from btfstep.btf.types cimport Row, Type


cdef struct Tag:
    # A declaration tag on a type, a variable or a function.
    uint32_t value  # string
    uint32_t owner  # local type id, or index of the variable or function in the record
    int component  # -1: the whole
    uint32_t order  # of its coming, within the unit


cdef struct SavedFunction:
    # A function that may be listed: see encode/parameters.pyx for who is.
    uint64_t address
    uint32_t symbol  # index in the table of ELF functions
    uint32_t returns  # type id
    uint32_t first_parameter
    uint32_t first_tag
    uint16_t nr_parameters
    uint32_t nr_tags
    uint16_t flags  # FUNCTION_...


cdef enum:
    FUNCTION_OPTIMIZED_PARAMETERS = 1
    FUNCTION_UNEXPECTED_REGISTER = 2
    FUNCTION_INCONSISTENT = 4
    FUNCTION_UNCERTAIN_LOCATION = 8
    FUNCTION_REORDERED = 16
    FUNCTION_SIGNATURE_CHANGED = 32


cdef struct Parameter:
    uint32_t name
    uint32_t type


cdef struct Variable:
    uint64_t offset  # in its section
    uint32_t name
    uint32_t type
    uint32_t section  # index in the ELF section table
    uint32_t size
    uint32_t linkage


cdef struct Record:
    Type *types  # [0] is void
    uint32_t nr_types, types_cap
    Row *rows
    uint32_t nr_rows, rows_cap
    Tag *type_tags  # in order of type id
    uint32_t nr_type_tags, type_tags_cap
    Variable *variables
    uint32_t nr_variables, variables_cap
    Tag *variable_tags
    uint32_t nr_variable_tags, variable_tags_cap
    SavedFunction *functions
    uint32_t nr_functions, functions_cap
    Parameter *parameters
    uint32_t nr_parameters, parameters_cap
    Tag *function_tags
    uint32_t nr_function_tags, function_tags_cap
    # Strings in the order of their first use by types, without those that
    # were emitted already when the worker looked.
    uint32_t *new_names
    uint32_t nr_new_names, new_names_cap
    uint32_t int_type  # local id of the first base type called "int"; 0: none
    bint has_array


cdef void record_clear(Record *record) noexcept nogil


@cython.final
cdef class UnitRecord:
    cdef Record c
