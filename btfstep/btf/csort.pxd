# SPDX-License-Identifier: GPL-2.0-only
"""The order of types in a header that is not to change when type ids do: see csort.pyx."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from btfstep.btf.reader cimport BtfReader

cdef enum:
    RANK_LAST = 10  # what defines nothing by itself, or has no name to go by


cdef struct SortKey:
    uint64_t prefix  # of sort_name: its first 8 bytes
    const char *sort_name
    const char *own_name
    uint32_t id
    uint32_t rank


cdef class TypeSorter:
    cdef BtfReader btf
    cdef uint64_t *hashes  # [2 * id + members]
    cdef uint8_t *hashed

    cdef int rank(self, uint32_t id) noexcept
    cdef int fill(self, uint32_t id, SortKey *key) noexcept
    cdef const char *sort_name(self, uint32_t id) noexcept
    cdef bint before(self, const SortKey *left, const SortKey *right) except -1
    cdef uint64_t disambiguate(self, uint32_t id, bint members, int depth) except? 0
    cdef uint64_t hash_of(self, uint32_t id, bint members, int depth) except? 0
    cdef uint64_t add_name(self, uint64_t hash, uint32_t offset) noexcept
    cdef int sort(self, SortKey *keys, uint32_t count) except -1
