# SPDX-License-Identifier: GPL-2.0-only
"""Names that a header has given already.

BTF may have many types of one name, C only one in each name space: the second
``struct foo`` has to become ``struct foo___2``.  Names are told apart by their
bytes, not by their offsets, because split BTF may repeat a string of its base.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport strcmp


cdef class NameCounter:
    """A hash table with open addressing; it holds pointers to names that somebody else keeps."""

    def __cinit__(self):
        self.mask = (1 << 14) - 1
        self.slots = <NameCount *>calloc(<size_t>(self.mask + 1), sizeof(NameCount))
        if self.slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.slots)

    cdef uint32_t give(self, const char *name, int space) except 0:
        """Give `name` once more; return how often it was given in this space, this time included."""
        cdef uint32_t hash = 2166136261U
        cdef const char *at = name
        cdef uint64_t slot
        while at[0]:
            hash = (hash ^ <uint8_t>at[0]) * 16777619U
            at += 1
        slot = (hash ^ hash >> 15) & self.mask
        while self.slots[slot].name != NULL:
            if self.slots[slot].hash == hash and strcmp(self.slots[slot].name, name) == 0:
                self.slots[slot].given[space] += 1
                return self.slots[slot].given[space]
            slot = (slot + 1) & self.mask
        self.slots[slot].name = name
        self.slots[slot].hash = hash
        self.slots[slot].given[space] = 1
        self.used += 1
        if self.used > self.mask // 2:
            self.grow()
        return 1

    cdef int grow(self) except -1:
        cdef uint64_t mask = self.mask * 2 + 1
        cdef NameCount *slots = <NameCount *>calloc(<size_t>(mask + 1), sizeof(NameCount))
        cdef uint64_t old, slot
        if slots == NULL:
            raise MemoryError
        for old in range(self.mask + 1):
            if self.slots[old].name == NULL:
                continue
            slot = (self.slots[old].hash ^ self.slots[old].hash >> 15) & mask
            while slots[slot].name != NULL:
                slot = (slot + 1) & mask
            slots[slot] = self.slots[old]
        free(self.slots)
        self.slots = slots
        self.mask = mask
        return 0
