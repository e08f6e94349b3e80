# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (no Python sequence is indexed here; ids come from this module and are below `count`)
"""The pool of `strings.pxd`, and the string section that it becomes."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcmp, memcpy, strlen

from btfstep.btf.memory cimport load_acquire, mix, reserve, store_release

import os

cdef enum:
    LETTERS = 1 << 18  # three times six bits
    FREE_WORK = 1 << 26  # bytes


cdef inline uint32_t letter(uint8_t c) noexcept nogil:
    """1 to 63 for what C names are made of, 0 for the rest."""
    if c >= 97 and c <= 122:
        return c - 96
    if c >= 65 and c <= 90:
        return c - 38
    if c >= 48 and c <= 57:
        return c + 5
    return 63 if c == 95 else 0


cdef inline uint32_t hash_text(uint64_t seed, uint64_t key, const uint8_t *text, uint32_t length) noexcept nogil:
    cdef uint64_t h = seed ^ length
    cdef uint64_t word
    cdef uint32_t i = 0
    while i + 8 <= length:
        memcpy(&word, text + i, 8)
        h = mix(h, word, key)
        i += 8
    word = 0
    memcpy(&word, text + i, length - i)
    return <uint32_t>(mix(h, word, key) >> 32)


cdef class StringPool:
    """All strings of one run; see `strings.pxd`.

    `prefix`: a name that starts with it stands for the prefix itself (--kabi_prefix).
    """

    def __cinit__(self, bytes prefix=None):
        cdef bytes random = os.urandom(16)
        memcpy(&self.key, <const char *>random, 8)
        memcpy(&self.seed, <const char *>random + 8, 8)
        self.key |= 1
        pthread_mutex_init(&self.lock, NULL)
        self.texts = <Text **>calloc(MAX_CHUNKS, sizeof(void *))
        self.offsets = <uint32_t **>calloc(MAX_CHUNKS, sizeof(void *))
        self.by_letters = <uint32_t *>calloc(LETTERS, sizeof(uint32_t))
        self.slots_mask = (1 << 16) - 1
        self.slots = <uint32_t *>calloc(<size_t>self.slots_mask + 1, sizeof(uint32_t))
        if not (self.texts and self.offsets and self.by_letters and self.slots):
            raise MemoryError
        if self.intern_copy(b"", 0) != 0:
            raise MemoryError
        self.set_prefix(prefix)
        self.emitted_size = 1  # the empty string, at offset 0
        self.work = FREE_WORK

    def __dealloc__(self):
        cdef uint32_t i
        cdef void *block
        pthread_mutex_destroy(&self.lock)
        for i in range(MAX_CHUNKS):
            if self.texts == NULL or self.texts[i] == NULL:
                break
            free(self.texts[i])
            if self.offsets != NULL:
                free(self.offsets[i])
        while self.arena != NULL:
            block = self.arena
            self.arena = (<uint8_t **>block)[0]
            free(block)
        free(self.texts)
        free(self.offsets)
        free(self.slots)
        free(self.by_offset)
        free(self.by_letters)
        free(self.order)

    cdef void allow(self, uint64_t size) noexcept:
        """Say how many bytes the sections have that strings come from.

        Strings may lie within one another, so few bytes could hold any length
        of them.  Real ones come to about the size of their sections.
        """
        self.work = FREE_WORK + 8 * size

    cdef int charge(self, uint64_t length) noexcept nogil:
        """Count bytes of text that are looked at; -1 once they come to an absurd length."""
        cdef int status = 0
        pthread_mutex_lock(&self.lock)
        if self.work < length:
            status = -1
        else:
            self.work -= length
        pthread_mutex_unlock(&self.lock)
        return status

    cdef int set_prefix(self, bytes prefix) except -1:
        if prefix:
            self.prefix = prefix
            self.prefix_text = self.prefix
            self.prefix_length = <uint32_t>len(prefix)
        return 0

    cdef StringPool copy(self):
        """A pool with the same strings under the same numbers, to go on from; no thread may change this one."""
        cdef StringPool new = StringPool()
        cdef uint32_t i, used
        new.origin = self
        new.seed = self.seed  # hashes that are stored are of them
        new.key = self.key
        for i in range((self.count + CHUNK - 1) >> CHUNK_BITS):
            if new.texts[i] == NULL:
                new.texts[i] = <Text *>malloc(CHUNK * sizeof(Text))
                new.offsets[i] = <uint32_t *>calloc(CHUNK, sizeof(uint32_t))
                if new.texts[i] == NULL or new.offsets[i] == NULL:
                    raise MemoryError
            used = min(<uint32_t>CHUNK, self.count - (i << CHUNK_BITS))
            memcpy(new.texts[i], self.texts[i], <size_t>used * sizeof(Text))
            memcpy(new.offsets[i], self.offsets[i], <size_t>used * sizeof(uint32_t))
        free(new.slots)
        new.slots = <uint32_t *>malloc((<size_t>self.slots_mask + 1) * sizeof(uint32_t))
        if new.slots == NULL:
            raise MemoryError
        memcpy(new.slots, self.slots, (<size_t>self.slots_mask + 1) * sizeof(uint32_t))
        memcpy(new.by_letters, self.by_letters, LETTERS * sizeof(uint32_t))
        new.slots_mask = self.slots_mask
        new.count = self.count
        new.base_size = self.base_size
        new.emitted_size = self.emitted_size
        return new

    cdef int use_debug_str(self, const SectionView *debug_str) except -1:
        """Let offsets of this section name strings; it must outlive the pool."""
        self.debug_str = debug_str[0]
        self.by_offset_size = self.whole_strings = debug_str.size
        while self.whole_strings and debug_str.data[self.whole_strings - 1] != 0:
            self.whole_strings -= 1
        self.by_offset = <uint32_t *>calloc(<size_t>(debug_str.size >> 2) + 1, sizeof(uint32_t))
        if self.by_offset == NULL:
            raise MemoryError
        return 0

    cdef uint32_t find_or_add(self, const uint8_t *text, uint32_t length, bint copy) noexcept nogil:
        """Under the lock."""
        cdef uint32_t h = hash_text(self.seed, self.key, text, length)
        cdef uint32_t at, id
        cdef uint8_t *block
        cdef const Text *known
        cdef Text *new
        at = h & self.slots_mask
        while self.slots[at] != 0:
            known = pool_text(self, self.slots[at] - 1)
            if known.hash == h and known.length == length and memcmp(known.bytes, text, length) == 0:
                return self.slots[at] - 1
            at = (at + 1) & self.slots_mask

        id = self.count
        if id >> CHUNK_BITS >= MAX_CHUNKS:
            return FAILED
        if self.texts[id >> CHUNK_BITS] == NULL:
            self.texts[id >> CHUNK_BITS] = <Text *>malloc(CHUNK * sizeof(Text))
            self.offsets[id >> CHUNK_BITS] = <uint32_t *>calloc(CHUNK, sizeof(uint32_t))
            if self.texts[id >> CHUNK_BITS] == NULL or self.offsets[id >> CHUNK_BITS] == NULL:
                return FAILED
        if copy:
            block = <uint8_t *>malloc(sizeof(void *) + length + 1)
            if block == NULL:
                return FAILED
            (<uint8_t **>block)[0] = self.arena
            self.arena = block
            block += sizeof(void *)
            memcpy(block, text, length)
            block[length] = 0
            text = block
        new = &self.texts[id >> CHUNK_BITS][id & (CHUNK - 1)]
        new.bytes = text
        new.length = length
        new.hash = h
        self.slots[at] = id + 1
        self.count = id + 1
        if <uint64_t>self.count * 2 > self.slots_mask:
            return self.rehash(id)
        return id

    cdef uint32_t rehash(self, uint32_t added) noexcept nogil:
        """Double the table, after `added` filled it to a half; returns `added`."""
        cdef uint32_t mask = self.slots_mask * 2 + 1
        cdef uint32_t *slots = <uint32_t *>calloc(<size_t>mask + 1, sizeof(uint32_t))
        cdef uint32_t id, at
        if slots == NULL:
            return FAILED
        for id in range(self.count):
            at = pool_text(self, id).hash & mask
            while slots[at] != 0:
                at = (at + 1) & mask
            slots[at] = id + 1
        free(self.slots)
        self.slots = slots
        self.slots_mask = mask
        return added

    cdef uint32_t intern_locked(self, const uint8_t *text, uint64_t length, bint copy) noexcept nogil:
        cdef uint32_t id
        if length >= 0x7FFFFFFF:
            return FAILED
        pthread_mutex_lock(&self.lock)
        if self.work < length:
            id = FAILED
        else:
            self.work -= length
            id = self.find_or_add(text, <uint32_t>length, copy)
        pthread_mutex_unlock(&self.lock)
        return id

    cdef uint32_t intern(self, const uint8_t *text, uint64_t length) noexcept nogil:
        """The number of a string whose bytes, NUL included, outlive the pool.

        FAILED (0xFFFFFFFE) when memory runs out, or the strings come to an absurd length.
        """
        cdef uint32_t letters, id
        if self.prefix_length and length >= self.prefix_length:
            if memcmp(text, self.prefix_text, self.prefix_length) == 0:
                return self.intern_locked(<const uint8_t *>self.prefix_text, self.prefix_length, False)
        if length <= 3:
            if length == 0:
                return 0
            letters = letter(text[0])
            if length > 1:
                letters |= letter(text[1]) << 6
            if length > 2:
                letters |= letter(text[2]) << 12
            # Shorter strings leave the high letters 0, as strange characters would: only whole ones count.
            if (
                letter(text[0])
                and (length < 2 or letter(text[1]))
                and (length < 3 or letter(text[2]))
            ):
                id = load_acquire(&self.by_letters[letters])
                if id == 0:
                    id = self.intern_locked(text, length, False) + 1
                    if id != FAILED + 1:
                        store_release(&self.by_letters[letters], id)
                return id - 1
        return self.intern_locked(text, length, False)

    cdef uint32_t intern_copy(self, const uint8_t *text, uint64_t length) noexcept nogil:
        """The number of a string whose bytes are the caller's: the pool keeps a copy."""
        return self.intern_locked(text, length, True)

    cdef uint32_t intern_str_offset(self, uint64_t offset) noexcept nogil:
        """The number of the string at `offset` of .debug_str; FAILED when there is none."""
        cdef uint32_t id
        cdef uint32_t *slot
        cdef bint taken
        cdef const uint8_t *text
        cdef const uint8_t *nul
        if offset >= self.by_offset_size:
            return FAILED
        slot = &self.by_offset[offset >> 2]
        id = load_acquire(slot)
        if id != 0 and id >> LOW_SHIFT == offset & 3:
            return (id & LOW_MASK) - 1
        taken = id != 0
        text = self.debug_str.data + offset
        nul = <const uint8_t *>memchr(text, 0, <size_t>(self.debug_str.size - offset))
        if nul == NULL:
            return FAILED
        id = self.intern(text, <uint64_t>(nul - text))
        if id != FAILED and not taken:
            # Another thread may do the same now: either is right.
            store_release(slot, <uint32_t>(offset & 3) << LOW_SHIFT | (id + 1))
        return id

    cdef uint32_t emit(self, uint32_t id) noexcept nogil:
        """The string's offset in the output, which it gets now if it has none yet.

        Only one thread at a time may call this, in the order of the output.
        FAILED when the section would pass 2 GiB or memory runs out.
        """
        cdef uint32_t *offset
        cdef uint32_t at
        if id == 0:
            return 0
        offset = pool_offset(self, id)
        if offset[0] != 0:
            return offset[0]
        if self.emitted_size + pool_text(self, id).length + 1 > 0x7FFFFFFF:
            return FAILED
        if reserve(<void **>&self.order, &self.order_cap, <uint64_t>self.order_count + 1, sizeof(uint32_t)) < 0:
            return FAILED
        self.order[self.order_count] = id
        self.order_count += 1
        at = <uint32_t>self.emitted_size
        self.emitted_size += pool_text(self, id).length + 1
        store_release(offset, at)
        return at

    cdef int use_base(self, const uint8_t *text, uint32_t size, uint32_t *ids) except -1:
        """Let the strings of a base, `size` bytes that end in NUL and outlive the pool, be there already.

        `ids`, `size` / 4 + 1 zeroes, is filled: at an offset by four, the number
        of the last string that starts there.
        """
        cdef uint32_t at = 0
        cdef uint32_t length, id
        cdef uint32_t *offset
        while at < size:
            length = <uint32_t>strlen(<const char *>text + at)
            # No other thread knows the pool yet.
            id = self.find_or_add(text + at, length, False)
            if id == FAILED:
                raise MemoryError
            # Of equal strings libbpf takes the first.
            offset = pool_offset(self, id)
            if id and offset[0] == 0:
                offset[0] = at
            ids[at >> 2] = id
            at += length + 1
        self.base_size = self.emitted_size = size
        return 0

    cdef int write_section(self, uint8_t *out) noexcept nogil:
        """Write the string section, `emitted_size` - `base_size` bytes, to `out`."""
        cdef uint32_t i
        cdef uint64_t at = 0
        cdef const Text *text
        if self.base_size == 0:
            # The empty string; a split one has its base's.
            out[0] = 0
            at = 1
        for i in range(self.order_count):
            text = pool_text(self, self.order[i])
            memcpy(out + at, text.bytes, text.length)
            at += text.length
            out[at] = 0
            at += 1
        return 0

    cdef uint32_t intern_bytes(self, bytes text) except? 0:
        """The number of a Python string."""
        cdef uint32_t id
        self.work += <uint64_t>len(text)  # not one of those that `allow` is about
        id = self.intern_copy(text, <uint64_t>len(text))
        if id == FAILED:
            raise MemoryError
        return id

    cdef bytes text(self, uint32_t id):
        """The bytes of string `id`."""
        cdef const Text *text = pool_text(self, id)
        return text.bytes[: text.length]
