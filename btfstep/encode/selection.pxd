# SPDX-License-Identifier: GPL-2.0-only
"""Which functions are listed, out of all that the units defined."""

cimport cython
from libc.stdint cimport uint16_t, uint32_t, uint64_t

from btfstep.btf.graph cimport TypeGraph
from btfstep.elf.symbols cimport SymbolTable
from btfstep.encode.context cimport EncodeContext
from btfstep.encode.record cimport Parameter, Record, SavedFunction, Tag


@cython.final
cdef class FunctionSelector:
    cdef readonly SymbolTable symbols
    cdef EncodeContext context
    cdef SavedFunction *functions  # types and tags' owners as keys of the graph
    cdef uint32_t nr_functions, functions_cap
    cdef Parameter *parameters
    cdef uint32_t nr_parameters, parameters_cap
    cdef Tag *tags
    cdef uint32_t nr_tags, tags_cap
    cdef uint64_t work  # steps left of one comparison
    cdef uint64_t steps  # of all so far

    cdef int add_unit(self, TypeGraph graph, const Record *record) noexcept nogil
    cdef bint match(self, TypeGraph graph, uint32_t a, uint32_t b, int depth) noexcept nogil
    cdef object mismatch(self, TypeGraph graph, const SavedFunction *a, const SavedFunction *b)
    cdef bint has_optimized_symbol(self, const SavedFunction *f) noexcept nogil
    cdef const SavedFunction *canonical(
        self, const SavedFunction **run, uint32_t count, bint true_signature
    ) noexcept nogil
    cdef uint32_t dotted_symbol(self, const SavedFunction *f) noexcept nogil
    cdef bint loses_parameters(self, const SavedFunction *f, bint true_signature) noexcept nogil
    cdef int list_function(
        self, TypeGraph graph, const SavedFunction *f, uint32_t name, bint kfunc=*, uint32_t kfunc_flags=*, features=*
    ) except -1
    cdef object name(self, TypeGraph graph, uint32_t id)
    cdef int emit(self, TypeGraph graph, uint32_t name) except -1
    cdef int add_tag(self, TypeGraph graph, uint32_t value, uint32_t owner, int component) except -1
    cdef uint32_t arena_pointer(self, TypeGraph graph, uint32_t key, uint32_t name) except? 0
    cdef uint32_t add_type(
        self, TypeGraph graph, uint32_t name, uint32_t info, uint32_t ref, uint32_t extra, uint32_t nr_rows
    ) except? 0
