# SPDX-License-Identifier: GPL-2.0-only
"""The C text of types: see cdump.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from btfstep.btf.cnames cimport NameCounter
from btfstep.btf.output cimport Output
from btfstep.btf.reader cimport BtfReader

cdef enum Progress:
    NOT_YET
    NOW  # on the way: met again, it closes a circle
    DONE


cdef struct Name:
    const char *text
    uint32_t given  # 0 or 1: as it is; above, it ends in ___N


cdef struct Span:
    uint64_t start  # in the text of the whole header
    uint64_t end  # 0: it has no definition there


cdef struct TypeState:
    uint8_t order  # Progress
    uint8_t emit  # Progress
    bint declared  # its forward declaration was written; or, a typedef as a whole
    bint referenced  # by some other type
    uint32_t given  # 0: not named yet
    int32_t align  # in bytes; -1: not known yet


cdef class CDumper:
    cdef BtfReader btf
    cdef NameCounter names
    cdef TypeState *states  # [id]
    cdef uint32_t *queue  # definitions in the order in which C needs them
    cdef uint32_t queued
    cdef uint32_t queue_room
    cdef uint32_t *stack  # of declarations that are being taken apart
    cdef uint32_t stacked
    cdef uint32_t stack_room
    cdef Output out
    cdef Span *spans  # [id]: where definitions are in `whole`
    cdef Output whole
    cdef bint replay  # take definitions from `whole`
    cdef uint64_t steps
    cdef uint32_t current  # the type that is being written, for messages
    cdef bint plain  # every type has its own name

    cdef int mark_referenced(self) except -1
    cdef int check_chains(self) except -1
    cdef int step(self, uint32_t id, int depth) except -1
    cdef int check_output(self) except -1

    cdef int order_all(self, bint sort) except -1
    cdef int order_sorted(self) except -1
    cdef bint settled(self, uint32_t id) noexcept
    cdef bint settled_chain(self, uint32_t id) noexcept
    cdef int order(self, uint32_t id, bint through_pointer, int depth) except -1
    cdef int enqueue(self, uint32_t id) except -1

    cdef int emit_queue(self) except -1
    cdef int emit(self, uint32_t id, uint32_t container, int depth) except -1
    cdef int emit_definition(self, uint32_t id, int depth) except -1
    cdef int emit_struct(self, uint32_t id, int level, int depth) except -1
    cdef int emit_enum(self, uint32_t id, int level) except -1
    cdef int emit_typedef(self, uint32_t id, int depth) except -1
    cdef int emit_tag(self, uint32_t id, const char *keyword) except -1
    cdef int emit_padding(
        self, int64_t offset, int64_t next_offset, int64_t align, bint in_bitfield, int level,
    ) except -1
    cdef int emit_declaration(self, uint32_t id, Name name, int level, int depth) except -1
    cdef int emit_chain(self, uint32_t bottom, uint32_t top, Name name, int level, int depth) except -1
    cdef int emit_parameters(self, uint32_t id, int level, int depth) except -1
    cdef int emit_nested(self, uint32_t bottom, uint32_t top, Name name, int level, int depth) except -1
    cdef int emit_core(self, uint32_t id, int level, int depth) except -1
    cdef int emit_vector_alias(self, uint32_t id) except -1
    cdef int emit_pad(self, const char *type, int64_t bits, int level) noexcept
    cdef uint32_t emit_qualifiers(self, uint32_t bottom, uint32_t top) noexcept
    cdef uint32_t drop_qualifiers(self, uint32_t bottom, uint32_t top) noexcept
    cdef int put_name(self, Name name) noexcept
    cdef int put_declared(self, Name name, bint after_pointer) noexcept
    cdef int indent(self, int level) noexcept
    cdef int push(self, uint32_t id) except -1
    cdef int emit_kfuncs(self, set only) except -1

    cdef int32_t align_of(self, uint32_t id, int depth) except -1
    cdef int64_t size_of(self, uint32_t id) noexcept
    cdef int64_t pad_bits(self, int which) noexcept
    cdef bint is_packed(self, uint32_t id, int depth) except -1
    cdef Name tag_name(self, uint32_t id) except *
    cdef Name identifier(self, uint32_t id) except *
    cdef Name named(self, uint32_t id, int space) except *
    cdef int start(self) except -1
