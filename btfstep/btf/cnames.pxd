# SPDX-License-Identifier: GPL-2.0-only
"""How often each name was given, in each of C's two name spaces: see cnames.pyx."""

from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    TAGS = 0  # struct, union and enum names
    IDENTIFIERS = 1  # typedefs and enumerators


cdef struct NameCount:
    const char *name  # NULL: free
    uint32_t hash
    uint32_t[2] given


cdef class NameCounter:
    cdef NameCount *slots
    cdef uint64_t mask
    cdef uint64_t used

    cdef uint32_t give(self, const char *name, int space) except 0
    cdef int grow(self) except -1
