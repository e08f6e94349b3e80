# SPDX-License-Identifier: GPL-2.0-only
"""The one reader of input bytes.

A ``Cursor`` is a window on a section.  Every read checks the window first; a
read past its end sets ``failed``, yields 0, and leaves the cursor at the end,
so a caller checks once a record rather than once a field.  Bytes are put
together by value, so neither the machine's byte order nor its alignment rules
matter; compilers turn each of these reads into one load.

Nothing here allocates or needs the GIL; a read costs about a nanosecond.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr


cdef struct Cursor:
    const uint8_t *start  # the section's first byte: offsets count from here
    const uint8_t *at
    const uint8_t *end
    bint big  # the bytes are big endian
    bint failed


cdef inline void cursor_set(
    Cursor *c, const uint8_t *start, uint64_t size, uint64_t offset, bint big
) noexcept nogil:
    """Put `c` at `offset` of the section of `size` bytes at `start`."""
    c.start = start
    c.end = start + size
    c.big = big
    c.failed = offset > size
    c.at = c.end if c.failed else start + offset


cdef inline uint64_t cursor_tell(const Cursor *c) noexcept nogil:
    return <uint64_t>(c.at - c.start)


cdef inline uint64_t cursor_left(const Cursor *c) noexcept nogil:
    return <uint64_t>(c.end - c.at)


cdef inline void cursor_fail(Cursor *c) noexcept nogil:
    c.failed = True
    c.at = c.end


cdef inline void cursor_skip(Cursor *c, uint64_t n) noexcept nogil:
    if n > <uint64_t>(c.end - c.at):
        cursor_fail(c)
    else:
        c.at += n


cdef inline uint8_t read_u8(Cursor *c) noexcept nogil:
    if c.at >= c.end:
        cursor_fail(c)
        return 0
    c.at += 1
    return (c.at - 1)[0]


cdef inline uint16_t read_u16(Cursor *c) noexcept nogil:
    cdef const uint8_t *p = c.at
    if c.end - p < 2:
        cursor_fail(c)
        return 0
    c.at = p + 2
    return load_u16(p, c.big)


cdef inline uint32_t load_u32(const uint8_t *p, bint big) noexcept nogil:
    """Four bytes that the caller has checked to be there."""
    if big:
        return p[3] | (<uint32_t>p[2] << 8) | (<uint32_t>p[1] << 16) | (<uint32_t>p[0] << 24)
    return p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)


cdef inline uint16_t load_u16(const uint8_t *p, bint big) noexcept nogil:
    """Two bytes that the caller has checked to be there."""
    return <uint16_t>(p[1] | (<uint32_t>p[0] << 8)) if big else <uint16_t>(p[0] | (<uint32_t>p[1] << 8))


cdef inline uint64_t load_u64(const uint8_t *p, bint big) noexcept nogil:
    """Eight bytes that the caller has checked to be there."""
    if big:
        return <uint64_t>load_u32(p + 4, True) | (<uint64_t>load_u32(p, True) << 32)
    return <uint64_t>load_u32(p, False) | (<uint64_t>load_u32(p + 4, False) << 32)


cdef inline uint32_t read_u24(Cursor *c) noexcept nogil:
    cdef const uint8_t *p = c.at
    if c.end - p < 3:
        cursor_fail(c)
        return 0
    c.at = p + 3
    if c.big:
        return p[2] | (<uint32_t>p[1] << 8) | (<uint32_t>p[0] << 16)
    return p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16)


cdef inline uint32_t read_u32(Cursor *c) noexcept nogil:
    cdef const uint8_t *p = c.at
    if c.end - p < 4:
        cursor_fail(c)
        return 0
    c.at = p + 4
    return load_u32(p, c.big)


cdef inline uint64_t read_u64(Cursor *c) noexcept nogil:
    cdef const uint8_t *p = c.at
    if c.end - p < 8:
        cursor_fail(c)
        return 0
    c.at = p + 8
    return load_u64(p, c.big)


cdef inline uint64_t read_uint(Cursor *c, unsigned int size) noexcept nogil:
    """An unsigned integer of 1, 2, 4 or 8 bytes: addresses and offsets."""
    if size == 8:
        return read_u64(c)
    if size == 4:
        return read_u32(c)
    if size == 2:
        return read_u16(c)
    if size == 1:
        return read_u8(c)
    cursor_fail(c)
    return 0


cdef inline uint64_t read_uleb(Cursor *c) noexcept nogil:
    """An unsigned LEB128 (section 7.6); bits past the 64th are dropped."""
    cdef uint64_t value = 0
    cdef unsigned int shift = 0
    cdef uint8_t byte
    # Nearly all are one byte long.
    if c.at < c.end and c.at[0] < 0x80:
        c.at += 1
        return (c.at - 1)[0]
    while c.at < c.end:
        byte = c.at[0]
        c.at += 1
        if shift < 64:
            value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return value
        # A run of continuation bytes is as long as the section at most, and
        # its shift must not wrap back into range.
        if shift < 64:
            shift += 7
    cursor_fail(c)
    return 0


cdef inline int64_t read_sleb(Cursor *c) noexcept nogil:
    """A signed LEB128 (section 7.6)."""
    cdef uint64_t value = 0
    cdef unsigned int shift = 0
    cdef uint8_t byte
    while c.at < c.end:
        byte = c.at[0]
        c.at += 1
        if shift < 64:
            value |= <uint64_t>(byte & 0x7F) << shift
            shift += 7
        if byte < 0x80:
            if shift < 64 and byte & 0x40:
                value |= (~<uint64_t>0) << shift
            return <int64_t>value
    cursor_fail(c)
    return 0


cdef inline void skip_leb(Cursor *c) noexcept nogil:
    while c.at < c.end:
        c.at += 1
        if (c.at - 1)[0] < 0x80:
            return
    cursor_fail(c)


cdef inline const uint8_t *read_string(Cursor *c) noexcept nogil:
    """The NUL-terminated string here; NULL, and failed, if no NUL is left."""
    cdef const uint8_t *text = c.at
    cdef const uint8_t *nul = NULL
    if c.at < c.end:
        nul = <const uint8_t *>memchr(c.at, 0, <size_t>(c.end - c.at))
    if nul == NULL:
        cursor_fail(c)
        return NULL
    c.at = nul + 1
    return text
