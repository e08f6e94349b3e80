# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only; type ids were resolved by the walk)
"""Infers from a struct's layout whether it was declared packed.

DWARF does not say so.  pahole concludes it from holes, padding and members
that lie where their types would not; the result decides whether a function
that takes such a struct on the stack is listed, so the inference is the same
here.  It is rare: a few structs in a kernel.
"""

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from btfstep.btf.constants cimport *
from btfstep.btf.types cimport Row, Type
from btfstep.encode.unit cimport PACKED_NO, PACKED_UNKNOWN, PACKED_YES, UnitEncoder

cdef enum:
    # Structs do not nest deeper; a struct within itself does.
    MAX_DEPTH = 64


cdef struct Member:
    uint64_t bit_offset
    uint64_t byte_offset
    uint64_t byte_size
    uint32_t bits  # 0: no bit field
    uint32_t type


cdef uint64_t size_of(UnitEncoder e, uint32_t id) noexcept nogil:
    """Bytes that an object of this type takes; 0 where that is not known."""
    cdef const Type *t
    cdef unsigned int kind
    cdef uint64_t count = 1
    for _ in range(100):
        if id == 0:
            return 0
        t = &e.record.types[id]
        kind = info_kind(t.info)
        if kind == BTF_KIND_PTR:
            return count * e.context.machine.address_size
        if kind == BTF_KIND_INT or kind == BTF_KIND_FLOAT:
            return count * e.extras[id].byte_size
        if kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
            return count * t.ref
        if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            return 0 if t.ref == 1 and info_vlen(t.info) == 0 else count * t.ref
        if kind == BTF_KIND_FUNC_PROTO:
            return count * (e.extras[id].byte_size or e.context.machine.address_size)
        if kind == BTF_KIND_FWD:
            return count * e.extras[id].byte_size
        if kind == BTF_KIND_ARRAY:
            count = count * t.extra & <uint64_t>0xFFFFFFFFFF
        id = t.ref
    return 0


cdef uint32_t strip(UnitEncoder e, uint32_t id) noexcept nogil:
    """Behind typedefs and qualifiers."""
    cdef unsigned int kind
    for _ in range(100):
        if id == 0:
            return 0
        kind = info_kind(e.record.types[id].info)
        if (
            kind != BTF_KIND_TYPEDEF and kind != BTF_KIND_CONST and kind != BTF_KIND_VOLATILE
            and kind != BTF_KIND_RESTRICT
        ):
            return id
        id = e.record.types[id].ref
    return 0


cdef uint32_t alignment_of(UnitEncoder e, uint32_t id, unsigned int depth) noexcept nogil:
    """The alignment that the type has by itself; `id` is a stripped type."""
    cdef const Type *t
    cdef unsigned int kind
    cdef uint32_t best = 0
    cdef uint32_t i, inner
    if id == 0 or depth > MAX_DEPTH:
        return 1
    t = &e.record.types[id]
    kind = info_kind(t.info)
    if kind == BTF_KIND_PTR:
        return e.context.machine.address_size
    if kind == BTF_KIND_INT or kind == BTF_KIND_FLOAT:
        return e.extras[id].byte_size or 1
    if kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
        return t.ref or 1
    if kind == BTF_KIND_ARRAY:
        # All dimensions at once, as DWARF has them.
        while info_kind(e.record.types[id].info) == BTF_KIND_ARRAY and depth <= MAX_DEPTH:
            id = strip(e, e.record.types[id].ref)
            depth += 1
            if id == 0:
                return 1
        return alignment_of(e, id, depth + 1)
    if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
        if e.extras[id].alignment == 0:
            for i in range(info_vlen(t.info)):
                inner = alignment_of(e, strip(e, e.record.rows[t.extra + i].type), depth + 1)
                if inner > best:
                    best = inner
            e.extras[id].alignment = <uint16_t>best if 0 < best <= 0xFFFF else 1
        return e.extras[id].alignment
    return 1


cdef void read_member(UnitEncoder e, const Type *t, const Row *row, Member *m) noexcept nogil:
    cdef uint64_t bit_size
    m.type = row.type
    m.bits = row.value >> 24 if t.info >> 31 else 0
    m.bit_offset = row.value & 0xFFFFFF if t.info >> 31 else row.value
    m.byte_offset = m.bit_offset // 8
    m.byte_size = size_of(e, strip(e, row.type) if m.bits else row.type)
    bit_size = m.byte_size * 8
    if m.bits and bit_size:
        # Where the unit of storage lies that the field is in.
        m.byte_offset = m.bit_offset // bit_size * bit_size // 8


cdef bint has_holes(UnitEncoder e, const Type *t) noexcept nogil:
    """Whether bytes between members or behind the last one belong to none."""
    cdef Member m
    cdef uint32_t i
    cdef uint64_t end
    cdef uint64_t last_bit = 0
    cdef uint64_t field_end = <uint64_t>t.ref * 8
    cdef uint64_t field_size = 0
    cdef bint in_field = False
    for i in range(info_vlen(t.info)):
        read_member(e, t, &e.record.rows[t.extra + i], &m)
        end = m.bit_offset + (m.bits if m.bits else m.byte_size * 8)
        if in_field:
            last_bit = min(m.bit_offset, field_end)
        if m.bits:
            if last_bit < m.byte_offset * 8 <= m.bit_offset:
                if m.byte_offset > last_bit // 8:
                    return True
            if end > field_end or m.byte_size * 8 > field_size:
                field_size = m.byte_size * 8
                field_end = m.byte_offset * 8 + field_size
                if end > field_end:
                    field_end += field_size
        else:
            if m.bit_offset // 8 > last_bit // 8:
                return True
            field_size = 0
            field_end = end
        in_field = m.bits != 0
        last_bit = end
    if in_field:
        last_bit = min(<uint64_t>t.ref * 8, field_end)
    return t.ref != last_bit // 8


cdef bint is_packed(UnitEncoder e, uint32_t id) noexcept nogil:
    """Whether the struct `id` of the walked unit is packed."""
    cdef const Type *t = &e.record.types[id]
    cdef Member m
    cdef uint32_t i, inner, alignment
    cdef uint32_t largest = 1
    if info_kind(t.info) != BTF_KIND_STRUCT:
        return False
    if e.extras[id].packed != PACKED_UNKNOWN:
        return e.extras[id].packed == PACKED_YES
    if has_holes(e, t):
        # Not packed itself; but a struct in it that is out of place must be.
        for i in range(info_vlen(t.info)):
            read_member(e, t, &e.record.rows[t.extra + i], &m)
            inner = strip(e, m.type)
            if inner and info_kind(e.record.types[inner].info) == BTF_KIND_STRUCT:
                if m.byte_offset % alignment_of(e, inner, 0):
                    e.extras[inner].packed = PACKED_YES
        e.extras[id].packed = PACKED_NO
        return False
    e.extras[id].packed = PACKED_NO
    for i in range(info_vlen(t.info)):
        read_member(e, t, &e.record.rows[t.extra + i], &m)
        alignment = alignment_of(e, strip(e, m.type), 0)
        if alignment == 1:
            continue
        largest = max(largest, alignment)
        if m.byte_offset % alignment:
            e.extras[id].packed = PACKED_YES
            return True
    if t.ref % largest:
        e.extras[id].packed = PACKED_YES
    return e.extras[id].packed == PACKED_YES
