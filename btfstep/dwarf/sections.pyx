# SPDX-License-Identifier: GPL-2.0-only
"""Holds the debug sections of one file for the native readers."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer

import mmap

from btfstep.errors import EncodeError, FormatError

cdef extern from "<sys/mman.h>" nogil:
    int madvise(void *address, size_t length, int advice)
    int MADV_DONTNEED

cdef size_t _PAGE = mmap.PAGESIZE

_NAMES = (
    ".debug_info",
    ".debug_abbrev",
    ".debug_str",
    ".debug_line_str",
    ".debug_str_offsets",
    ".debug_addr",
    ".debug_loclists",
    ".debug_loc",
    ".debug_types",
)


@cython.final
cdef class _Pin:
    """Keeps one buffer exported, so that its bytes neither move nor go away."""

    cdef Py_buffer view
    cdef bint held

    def __cinit__(self, object buffer):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef class DebugSections:
    """The debug sections of an ELF image, decompressed where they were compressed.

    `image` is a ``btfstep.elf.image.ElfImage``; it must stay open as long as
    this object is used.  A section that the file lacks is empty here.

    Raises FormatError when a section's contents cannot be had.
    """

    def __cinit__(self, object image, object relocate=None):
        cdef int i
        cdef _Pin pin
        self.path = image.path
        self._buffers = []
        self.c.big = image.big_endian
        self.c.machine = image.machine
        for i in range(SEC_COUNT):
            self.c.view[i].data = b""
            self.c.view[i].size = 0
            contents = image.debug_section(_NAMES[i])
            if contents is None:
                continue
            if relocate is not None:
                contents = relocate(_NAMES[i], contents)
            self.mapped[i] = isinstance(contents, memoryview) and isinstance(contents.obj, mmap.mmap)
            pin = _Pin(contents)
            self._buffers.append(pin)
            if pin.view.len:
                self.c.view[i].data = <const uint8_t *>pin.view.buf
                self.c.view[i].size = <uint64_t>pin.view.len

    @property
    def has_dwarf(self) -> bool:
        """Whether the file holds any DIE at all."""
        return self.c.view[SEC_INFO].size != 0 or self.c.view[SEC_TYPES].size != 0

    def size(self, int section) -> int:
        """Bytes of the section with this index of the section table."""
        if not 0 <= section < SEC_COUNT:
            raise ValueError("no such debug section")
        return self.c.view[section].size

    cdef void release(self, int section, uint64_t start, uint64_t end) noexcept nogil:
        """Let go of a part of a section that will hardly be read again, so that it does not count as memory in use.

        Pages of a mapped file come back from the page cache should they be needed after all.
        """
        cdef size_t first, last
        if not self.mapped[section] or start >= end or end > self.c.view[section].size:
            return
        first = (<size_t>self.c.view[section].data + <size_t>start) // _PAGE * _PAGE
        last = (<size_t>self.c.view[section].data + <size_t>end) // _PAGE * _PAGE
        if last > first:
            madvise(<void *>first, last - first, MADV_DONTNEED)

    cdef int raise_fault(self, const Fault *fault) except -1:
        """Raise what a native reader recorded."""
        if fault.what == NULL:
            raise MemoryError
        message = fault.what.decode("ascii")
        if fault.section < 0:
            raise EncodeError(message, path=self.path)
        raise FormatError(message, path=self.path, section=_NAMES[fault.section], offset=fault.offset)
