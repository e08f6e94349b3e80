# SPDX-License-Identifier: GPL-2.0-only
"""Parsed BTF: one array from type id to record, over a base and what is split from it.

A record is what the file has, as 32-bit words of this machine's byte order:
name_off, info, size or type, and then what its kind adds.  Everything in it
was checked when the BTF was read: records lie inside the section, every type
id that a record holds is smaller than `total`, and every string offset is that
of a NUL-terminated string.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    KIND_MAX = 19  # BTF_KIND_ENUM64, the last one that is known here
    RECORD = 3  # words of every record: name_off, info, size or type
    MEMBER = 3  # name_off, type, offset
    PARAM = 2  # name_off, type
    ENUMERATOR = 2  # name_off, value
    ENUMERATOR64 = 3  # name_off, low and high half of the value
    SECINFO = 3  # type, offset, size


cdef class BtfReader:
    cdef readonly BtfReader base  # None, or what this is split from
    cdef readonly str path
    cdef readonly str section
    cdef readonly bint big_endian
    cdef readonly uint32_t start_id  # of the first type that is not the base's
    cdef readonly uint32_t total  # one more than the largest type id
    cdef readonly uint32_t address_size  # 4 or 8: what the file says, or what its types tell
    cdef const uint32_t **types  # [id]; the base's records are the base's
    cdef uint32_t *words  # this file's own types
    cdef uint64_t word_count
    cdef const char *text  # this file's own strings, in `strings`
    cdef readonly bytes strings  # this file's own
    cdef uint32_t text_start  # the first string offset that is not the base's
    cdef uint32_t text_end
    cdef readonly bytes layout  # the layout section: 4 bytes for each kind

    cdef const char *string(self, uint32_t offset) noexcept
    cdef object error(self, str message)
    cdef object type_error(self, uint32_t id, str message)
    cdef int parse(self, const unsigned char *data, uint64_t size) except -1
    cdef int parse_strings(self, bytes strings) except -1
    cdef int parse_types(self, uint32_t length) except -1
    cdef int64_t record_words(self, uint32_t id, const uint32_t *record) except -1
    cdef int check_type(self, uint32_t id) except -1
    cdef int check_id(self, uint32_t id, uint32_t referenced) except -1
    cdef int check_name(self, uint32_t id, uint32_t offset) except -1
    cdef uint32_t guess_address_size(self) except 0


cdef inline unsigned int kind_of(const uint32_t *record) noexcept nogil:
    return (record[1] >> 24) & 0x7F


cdef inline uint32_t vlen_of(const uint32_t *record) noexcept nogil:
    return record[1] & 0xFFFFFF


cdef inline bint kflag_of(const uint32_t *record) noexcept nogil:
    return record[1] >> 31


cdef inline uint32_t member_bits(const uint32_t *record, const uint32_t *member) noexcept nogil:
    """The width of a bit-field; 0 for any other member."""
    return member[2] >> 24 if kflag_of(record) else 0


cdef inline uint32_t member_offset(const uint32_t *record, const uint32_t *member) noexcept nogil:
    """The offset of a member in bits."""
    return member[2] & 0xFFFFFF if kflag_of(record) else member[2]
