# SPDX-License-Identifier: GPL-2.0-only
"""The debug sections as native code sees them, and where an error happened.

``Sections`` borrows: the ``DebugSections`` object that filled it holds the
buffers, and outlives every reader.
"""

cimport cython
from libc.stdint cimport uint8_t, uint64_t

cdef enum:  # SectionId
    SEC_INFO
    SEC_ABBREV
    SEC_STR
    SEC_LINE_STR
    SEC_STR_OFFSETS
    SEC_ADDR
    SEC_LOCLISTS
    SEC_LOC
    SEC_TYPES
    SEC_COUNT


cdef struct SectionView:
    const uint8_t *data
    uint64_t size


cdef struct Sections:
    SectionView view[SEC_COUNT]
    bint big  # byte order of the file
    int machine  # e_machine


cdef struct Fault:
    const char *what  # static text; NULL: memory ran out
    int section  # a SectionId, or -1
    uint64_t offset


cdef inline int fail(Fault *fault, const char *what, int section, uint64_t offset) noexcept nogil:
    """Record the first fault; always -1, for `return fail(...)`."""
    fault.what = what
    fault.section = section
    fault.offset = offset
    return -1


cdef inline int fail_memory(Fault *fault) noexcept nogil:
    return fail(fault, NULL, -1, 0)


@cython.final
cdef class DebugSections:
    cdef Sections c
    cdef readonly str path
    cdef list _buffers
    cdef bint mapped[SEC_COUNT]  # its bytes are those of the mapped file
    cdef void release(self, int section, uint64_t start, uint64_t end) noexcept nogil
    cdef int raise_fault(self, const Fault *fault) except -1
