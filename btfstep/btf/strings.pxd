# SPDX-License-Identifier: GPL-2.0-only
"""String identity: every distinct string of a run has one small number.

Workers ask for the number of a name a few million times a run.  A name in
.debug_str is found by its offset there, in one load; one of up to three
letters, which compilers write inline, by its letters; only the first sight of
a string hashes its bytes, under the lock.

Numbers are handed out in the order in which threads come, so nothing that is
written may depend on them: the output's order is that of `emit`, which only
the merge calls, in unit order.  Number 0 is the empty string.
"""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from btfstep.btf.memory cimport load_acquire
from btfstep.dwarf.sections cimport SectionView

cdef extern from "<pthread.h>" nogil:
    # Several times cheaper than Python's locks, and held for a few dozen nanoseconds.
    ctypedef struct pthread_mutex_t:
        pass

    int pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes)
    int pthread_mutex_lock(pthread_mutex_t *mutex)
    int pthread_mutex_unlock(pthread_mutex_t *mutex)
    int pthread_mutex_destroy(pthread_mutex_t *mutex)


cdef enum:
    CHUNK_BITS = 14
    CHUNK = 1 << CHUNK_BITS
    MAX_CHUNKS = 1 << 14  # 268 million strings
    # In `by_offset`. Of strings within the same four bytes the first one has the
    # slot, and others are searched for: few are so short, and a slot a byte would
    # take more memory than all that a kernel's BTF is made of.
    LOW_SHIFT = 30
    LOW_MASK = (1 << LOW_SHIFT) - 1
    NO_NAME = 0xFFFFFFFF  # no DW_AT_name at all, which is not the empty name
    FAILED = 0xFFFFFFFE  # memory ran out, or there is no such string


cdef struct Text:
    const uint8_t *bytes  # NUL-terminated; in a section, or owned by the pool
    uint32_t length  # without the NUL
    uint32_t hash


@cython.final
cdef class StringPool:
    cdef Text **texts  # [id >> CHUNK_BITS][id & (CHUNK - 1)]
    cdef uint32_t **offsets  # the same shape: offset in the output, 0: not emitted yet
    cdef uint32_t count  # of numbers given out
    cdef uint32_t *slots  # open addressing: id + 1
    cdef uint32_t slots_mask
    cdef uint64_t key  # of all hashes of the run, see `mix`
    cdef uint64_t seed
    cdef uint32_t *by_offset  # a slot for each four bytes of .debug_str: offset & 3, and id + 1; 0: free
    cdef uint64_t by_offset_size
    cdef uint64_t whole_strings  # bytes of .debug_str up to its last NUL, that included
    cdef uint32_t *by_letters  # id + 1
    cdef pthread_mutex_t lock
    cdef SectionView debug_str
    cdef uint64_t work  # bytes of text that may still be looked up, see `allow`
    cdef uint8_t *arena  # list of owned blocks, linked by their first bytes
    cdef readonly uint64_t base_size  # bytes of the base's strings, which come before ours
    cdef readonly uint64_t emitted_size  # bytes of the strings so far, the base's included
    cdef uint32_t *order  # ids in the order of emission
    cdef uint32_t order_count
    cdef uint32_t order_cap
    cdef StringPool origin  # owns strings that a copy shares
    cdef bytes prefix  # --kabi_prefix: what starts with it stands for it
    cdef const char *prefix_text
    cdef uint32_t prefix_length

    cdef void allow(self, uint64_t size) noexcept
    cdef int charge(self, uint64_t length) noexcept nogil
    cdef int use_debug_str(self, const SectionView *debug_str) except -1
    cdef uint32_t find_or_add(self, const uint8_t *text, uint32_t length, bint copy) noexcept nogil
    cdef uint32_t rehash(self, uint32_t added) noexcept nogil
    cdef uint32_t intern_locked(self, const uint8_t *text, uint64_t length, bint copy) noexcept nogil
    cdef uint32_t intern(self, const uint8_t *text, uint64_t length) noexcept nogil
    cdef uint32_t intern_copy(self, const uint8_t *text, uint64_t length) noexcept nogil
    cdef uint32_t intern_str_offset(self, uint64_t offset) noexcept nogil
    cdef uint32_t emit(self, uint32_t id) noexcept nogil
    cdef int write_section(self, uint8_t *out) noexcept nogil
    cdef StringPool copy(self)
    cdef int set_prefix(self, bytes prefix) except -1
    cdef int use_base(self, const uint8_t *text, uint32_t size, uint32_t *ids) except -1
    cdef uint32_t intern_bytes(self, bytes text) except? 0
    cdef bytes text(self, uint32_t id)


cdef inline const Text *pool_text(StringPool pool, uint32_t id) noexcept nogil:
    return &pool.texts[id >> CHUNK_BITS][id & (CHUNK - 1)]


cdef inline uint32_t pool_at(StringPool pool, uint64_t offset) noexcept nogil:
    """The number of the string at `offset` of .debug_str; FAILED when there is none.

    In line, since it is asked for whatever a worker has not seen lately.
    """
    cdef uint32_t id
    if offset < pool.by_offset_size:
        id = load_acquire(&pool.by_offset[offset >> 2])
        if id != 0 and id >> LOW_SHIFT == offset & 3:
            return (id & LOW_MASK) - 1
    return pool.intern_str_offset(offset)


cdef inline uint32_t *pool_offset(StringPool pool, uint32_t id) noexcept nogil:
    return &pool.offsets[id >> CHUNK_BITS][id & (CHUNK - 1)]
