# SPDX-License-Identifier: GPL-2.0-only
"""Text that grows in memory, up to a limit.

`failed` stays set once something did not fit: whoever writes looks at it now
and then, and not after each word.  After that, nothing more is written.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, strlen

cdef enum:
    FULL = 1  # the limit was reached
    NO_MEMORY = 2


cdef struct Output:
    char *data  # owned: free it
    uint64_t size
    uint64_t room
    uint64_t limit
    int failed


cdef inline void init_output(Output *out, uint64_t limit) noexcept nogil:
    out.data = NULL
    out.size = out.room = 0
    out.limit = limit
    out.failed = 0


cdef inline void free_output(Output *out) noexcept nogil:
    free(out.data)
    out.data = NULL
    out.size = out.room = 0


cdef inline int make_room(Output *out, uint64_t more) noexcept nogil:
    """Make room for `more` bytes; -1 if there is none."""
    cdef uint64_t need = out.size + more
    cdef uint64_t room
    cdef void *moved
    if need <= out.room:
        return 0
    if out.failed:
        return -1
    if need > out.limit:
        out.failed = FULL
        return -1
    room = need + need // 2 + 4096
    moved = realloc(out.data, <size_t>room)
    if moved == NULL:
        out.failed = NO_MEMORY
        return -1
    out.data = <char *>moved
    out.room = room
    return 0


cdef inline void put_bytes(Output *out, const char *text, uint64_t size) noexcept nogil:
    if make_room(out, size) == 0:
        memcpy(out.data + out.size, text, size)
        out.size += size


cdef inline void put(Output *out, const char *text) noexcept nogil:
    put_bytes(out, text, strlen(text))


cdef inline void put_unsigned(Output *out, uint64_t value) noexcept nogil:
    cdef char[20] digits
    cdef int at = 20
    while True:
        at -= 1
        digits[at] = <char>(48 + value % 10)
        value //= 10
        if value == 0:
            break
    put_bytes(out, digits + at, 20 - at)


cdef inline void put_signed(Output *out, int64_t value) noexcept nogil:
    if value < 0:
        put(out, "-")
        put_unsigned(out, 0 - <uint64_t>value)
    else:
        put_unsigned(out, <uint64_t>value)
