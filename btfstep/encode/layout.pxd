# SPDX-License-Identifier: GPL-2.0-only
"""Sizes of types, and whether a struct is packed as far as its layout shows it."""

from libc.stdint cimport uint32_t, uint64_t

from btfstep.encode.unit cimport UnitEncoder

cdef uint64_t size_of(UnitEncoder e, uint32_t id) noexcept nogil
cdef bint is_packed(UnitEncoder e, uint32_t id) noexcept nogil
