# SPDX-License-Identifier: GPL-2.0-only
"""The symbol table of an ELF file, and the functions in it.

A function is known by its name up to the first dot; the symbols that compilers
made of it (``name.isra.0``) are gathered under it.  Functions are sorted by
name, and a function's symbols keep the order of the table.
"""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef enum:
    STT_OBJECT_TYPE = 1
    STT_FUNC_TYPE = 2


cdef struct Symbol:
    const uint8_t *name  # NUL-terminated, in the string table
    uint64_t value
    uint64_t size
    uint32_t name_length  # up to the first dot
    uint64_t start  # the first eight bytes up to there, big endian, which decide most comparisons
    uint32_t section
    uint32_t index  # in the table
    uint8_t type
    bint optimized  # a function: the compiler's variant of it, by its name


cdef struct ElfFunction:
    uint32_t first  # of `SymbolTable.symbols`
    uint32_t count
    uint32_t kfunc_flags
    bint kfunc
    bint ambiguous  # its symbols have different addresses


@cython.final
cdef class SymbolTable:
    cdef readonly str path
    cdef object _symtab_view, _strtab_view, _index_view
    cdef const uint8_t *symtab
    cdef uint64_t symtab_size
    cdef const uint8_t *strtab
    cdef uint64_t strtab_size
    cdef const uint8_t *indices  # SHT_SYMTAB_SHNDX, or NULL
    cdef uint64_t indices_size
    cdef bint is64, big
    cdef readonly uint32_t count  # entries of the table
    cdef Symbol *symbols  # of functions, sorted
    cdef uint32_t nr_symbols, symbols_cap
    cdef ElfFunction *functions
    cdef readonly uint32_t nr_functions
    cdef uint32_t functions_cap
    cdef uint64_t work  # bytes of names that may still be read
    cdef bint exhausted
    cdef const Symbol *function(self, uint32_t index) noexcept nogil
    cdef bint read(self, uint32_t index, Symbol *symbol) noexcept nogil
    cdef int check(self) except -1
    cdef bint differ(self, uint32_t first, uint32_t end) noexcept nogil
