# SPDX-License-Identifier: GPL-2.0-only
"""Growing C arrays, and the two atomic accesses that the threads share.

An array is a pointer with a count and a capacity beside it.  `reserve` makes
room for `need` elements in all, doubling, with the multiplication checked.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport realloc

cdef extern from *:
    """
    /* Cython has no words for these; they are plain loads and stores on every machine that builds kernels. */
    #define btfstep_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
    #define btfstep_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

    /* The high half of a product, folded onto the low one. */
    static inline uint64_t btfstep_fold(uint64_t a, uint64_t b)
    {
    #ifdef __SIZEOF_INT128__
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    #else
        uint64_t high = (a >> 32) * (b >> 32), low = (uint64_t)(uint32_t)a * (uint32_t)b;
        uint64_t cross = (a >> 32) * (uint32_t)b ^ (uint64_t)(uint32_t)a * (b >> 32);
        return high ^ low ^ (cross << 32 | cross >> 32);
    #endif
    }
    """
    uint32_t load_acquire "btfstep_load_acquire"(const uint32_t *p) noexcept nogil
    uint64_t fold "btfstep_fold"(uint64_t a, uint64_t b) noexcept nogil
    void prefetch "__builtin_prefetch"(const void *p) noexcept nogil
    void store_release "btfstep_store_release"(uint32_t *p, uint32_t value) noexcept nogil


cdef inline int reserve(void **array, uint32_t *cap, uint64_t need, size_t element) noexcept nogil:
    """Make `*array` hold `need` elements of `element` bytes; -1 when memory runs out."""
    cdef uint64_t new_cap
    cdef void *moved
    if need <= cap[0]:
        return 0
    if need > 0x7FFFFFFF:
        return -1
    new_cap = <uint64_t>cap[0] * 2
    if new_cap < 64:
        new_cap = 64
    while new_cap < need:
        new_cap *= 2
    moved = realloc(array[0], <size_t>(new_cap * element))
    if moved == NULL:
        return -1
    array[0] = moved
    cap[0] = <uint32_t>new_cap
    return 0


cdef inline uint64_t mix(uint64_t h, uint64_t value, uint64_t key) noexcept nogil:
    """One round of hashing: multiply and fold; every bit of the result depends on all three.

    `key` is odd, and another in each run: with a known one, a file could be
    made whose types and strings all collide.
    """
    return fold(h ^ value, key)
