# SPDX-License-Identifier: GPL-2.0-only
"""Numbers that stand for definitions: equal where two BTFs define the same, whatever the type ids.

A definition is what a name stands for: the members of a struct and where they are, the prototype
of a function.  What it refers to by name enters by name alone, so a change in one struct does not
spread to all that point to it; what has no name enters with all that it holds.  An anonymous
enumeration goes by its first constant.

64 bits: definitions are compared with earlier ones of the same name, so that a change goes unseen
once in 2 ** 64. A whole kernel takes some hundredths of a second.
"""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from btfstep.btf.constants cimport (
    BTF_KIND_ARRAY,
    BTF_KIND_CONST,
    BTF_KIND_DATASEC,
    BTF_KIND_DECL_TAG,
    BTF_KIND_ENUM,
    BTF_KIND_ENUM64,
    BTF_KIND_FLOAT,
    BTF_KIND_FUNC,
    BTF_KIND_FUNC_PROTO,
    BTF_KIND_FWD,
    BTF_KIND_INT,
    BTF_KIND_PTR,
    BTF_KIND_RESTRICT,
    BTF_KIND_STRUCT,
    BTF_KIND_TYPE_TAG,
    BTF_KIND_TYPEDEF,
    BTF_KIND_UNION,
    BTF_KIND_VAR,
    BTF_KIND_VOLATILE,
)
from btfstep.btf.reader cimport (
    ENUMERATOR,
    ENUMERATOR64,
    MEMBER,
    PARAM,
    RECORD,
    SECINFO,
    BtfReader,
    kflag_of,
    kind_of,
    member_bits,
    member_offset,
    vlen_of,
)

# Built from halves: Cython takes larger literals for Python's.
cdef uint64_t TEXT_START = <uint64_t>0xCBF29CE4 << 32 | 0x84222325  # FNV-1a
cdef uint64_t TEXT_FACTOR = <uint64_t>1 << 40 | 0x1B3
cdef uint64_t MIX_A = <uint64_t>0x9E3779B9 << 32 | 0x7F4A7C15
cdef uint64_t MIX_B = <uint64_t>0xD6E8FEB8 << 32 | 0x6659FD93

cdef enum:
    DEEPEST = 256  # references in a row, and anonymous types in each other; real ones have a dozen


@cython.final
cdef class Signer:
    """Signatures of the types of one BTF."""

    cdef BtfReader btf
    cdef uint64_t *known  # [id], of what a reference to the type says; 0: not known yet

    def __cinit__(self, BtfReader btf not None):
        self.btf = btf
        self.known = <uint64_t *>calloc(btf.total, sizeof(uint64_t))
        if self.known == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.known)

    def definition(self, id):
        """The signature of a type's definition, 0 if it defines nothing (a pointer, void, an anonymous struct ...).

        Raises FormatError for a type that is endless, IndexError if there is no such type.
        """
        if not 0 <= id < self.btf.total:
            raise IndexError(f"no type {id}")
        return self.define(id, 0) if self.defines(id) else 0

    def own(self):
        """``definition`` of every type that is not the base's, in order of ids."""
        cdef uint32_t id
        return [self.define(id, 0) if self.defines(id) else 0 for id in range(self.btf.start_id, self.btf.total)]

    cdef bint defines(self, uint32_t id) noexcept:
        cdef const uint32_t *record = self.btf.types[id]
        cdef unsigned int kind = kind_of(record)
        if id == 0 or kind in (
            BTF_KIND_PTR, BTF_KIND_ARRAY, BTF_KIND_CONST, BTF_KIND_VOLATILE, BTF_KIND_RESTRICT, BTF_KIND_TYPE_TAG,
            BTF_KIND_FUNC_PROTO,
        ):
            return False
        if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            return self.btf.string(record[0])[0] != 0
        return True

    cdef uint64_t define(self, uint32_t id, int depth) except? 0:
        """What a type consists of."""
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *part = record + RECORD
        cdef unsigned int kind = kind_of(record)
        cdef uint32_t vlen = vlen_of(record)
        cdef uint64_t hash = self.text(mix(<uint64_t>kind << 32 | vlen, 1), record[0])
        if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            hash = mix(hash, record[2])
            for _ in range(vlen):
                hash = self.text(hash, part[0])
                hash = mix(hash, <uint64_t>member_bits(record, part) << 32 | member_offset(record, part))
                hash = mix(hash, self.refer(part[1], depth + 1))
                part += MEMBER
        elif kind == BTF_KIND_ENUM:
            hash = mix(hash, <uint64_t>kflag_of(record) << 32 | record[2])
            for _ in range(vlen):
                hash = mix(self.text(hash, part[0]), part[1])
                part += ENUMERATOR
        elif kind == BTF_KIND_ENUM64:
            hash = mix(hash, <uint64_t>kflag_of(record) << 32 | record[2])
            for _ in range(vlen):
                hash = mix(self.text(hash, part[0]), <uint64_t>part[2] << 32 | part[1])
                part += ENUMERATOR64
        elif kind == BTF_KIND_FUNC_PROTO:
            hash = mix(hash, self.refer(record[2], depth + 1))
            for _ in range(vlen):
                hash = mix(self.text(hash, part[0]), self.refer(part[1], depth + 1))
                part += PARAM
        elif kind == BTF_KIND_DATASEC:
            hash = mix(hash, record[2])
            for _ in range(vlen):
                hash = mix(mix(hash, self.refer(part[0], depth + 1)), <uint64_t>part[1] << 32 | part[2])
                part += SECINFO
        elif kind == BTF_KIND_ARRAY:
            hash = mix(mix(hash, part[2]), self.refer(part[0], depth + 1))
        elif kind == BTF_KIND_INT:
            hash = mix(hash, <uint64_t>record[2] << 32 | part[0])
        elif kind == BTF_KIND_FLOAT or kind == BTF_KIND_FWD:
            hash = mix(hash, <uint64_t>kflag_of(record) << 32 | record[2])
        elif kind == BTF_KIND_VAR:
            hash = mix(mix(hash, part[0]), self.refer(record[2], depth + 1))
        elif kind == BTF_KIND_DECL_TAG:
            hash = mix(mix(hash, <uint64_t>kflag_of(record) << 32 | part[0]), self.refer(record[2], depth + 1))
        elif refers(kind):
            hash = mix(mix(hash, kflag_of(record)), self.refer(record[2], depth + 1))
        return hash or 1

    cdef uint64_t refer(self, uint32_t id, int depth) except? 0:
        """What something that refers to a type says of it."""
        cdef const uint32_t *record = self.btf.types[id]
        cdef unsigned int kind = kind_of(record)
        if id == 0:
            return 1
        if self.known[id]:
            return self.known[id]
        if depth > DEEPEST:
            raise self.btf.type_error(id, f"reference cycle, or more than {DEEPEST} references in a row")
        if kind == BTF_KIND_FWD:  # the same as what it declares
            kind = BTF_KIND_UNION if kflag_of(record) else BTF_KIND_STRUCT
            self.known[id] = self.named(kind, record[0])
        elif kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
            if self.btf.string(record[0])[0] == 0 and vlen_of(record):
                self.known[id] = self.named(BTF_KIND_ENUM64, record[RECORD])
            else:
                self.known[id] = self.named(BTF_KIND_ENUM, record[0])
        elif kind in (BTF_KIND_TYPEDEF, BTF_KIND_INT, BTF_KIND_FLOAT, BTF_KIND_FUNC, BTF_KIND_VAR) or (
            kind in (BTF_KIND_STRUCT, BTF_KIND_UNION) and self.btf.string(record[0])[0] != 0
        ):
            self.known[id] = self.named(kind, record[0])
        else:
            self.known[id] = self.define(id, depth)
        return self.known[id]

    cdef uint64_t named(self, unsigned int kind, uint32_t name) noexcept:
        return self.text(kind, name) or 1

    cdef uint64_t text(self, uint64_t hash, uint32_t offset) noexcept:
        cdef const uint8_t *letter = <const uint8_t *>self.btf.string(offset)
        cdef uint64_t sum = TEXT_START
        while letter[0]:
            sum = (sum ^ letter[0]) * TEXT_FACTOR
            letter += 1
        return mix(hash, sum)


cdef inline uint64_t mix(uint64_t hash, uint64_t value) noexcept nogil:
    hash = (hash ^ value) * MIX_A
    hash = (hash ^ (hash >> 32)) * MIX_B
    return hash ^ (hash >> 32)


cdef inline bint refers(unsigned int kind) noexcept nogil:
    """Whether a type of this kind has another one's id where others have their size."""
    return kind in (
        BTF_KIND_PTR, BTF_KIND_TYPEDEF, BTF_KIND_VOLATILE, BTF_KIND_CONST, BTF_KIND_RESTRICT, BTF_KIND_FUNC,
        BTF_KIND_TYPE_TAG,
    )
