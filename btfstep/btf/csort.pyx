# SPDX-License-Identifier: GPL-2.0-only
"""Sort types so that a header depends on what it declares, and not on type ids.

The order is bpftool's: by rank (anonymous enumerations, enumerations, numbers,
structs, prototypes, everything else), then by the name of what a type refers to
in the end, then by its own name, then by a hash over names, then by id.  The
hash is only worked out for types that all else leaves equal, of which a kernel
has few.
"""

from libc.stdint cimport int8_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, strcmp

from btfstep.btf.constants cimport (
    BTF_KIND_ARRAY,
    BTF_KIND_CONST,
    BTF_KIND_DECL_TAG,
    BTF_KIND_ENUM,
    BTF_KIND_ENUM64,
    BTF_KIND_FLOAT,
    BTF_KIND_FUNC_PROTO,
    BTF_KIND_INT,
    BTF_KIND_PTR,
    BTF_KIND_RESTRICT,
    BTF_KIND_STRUCT,
    BTF_KIND_TYPE_TAG,
    BTF_KIND_TYPEDEF,
    BTF_KIND_UNION,
    BTF_KIND_VOLATILE,
)
from btfstep.btf.reader cimport (
    ENUMERATOR,
    ENUMERATOR64,
    MEMBER,
    RECORD,
    BtfReader,
    kind_of,
    vlen_of,
)

cdef enum:
    DEEPEST = 4096  # references in a row; check_chains of cdump.pyx allows fewer


cdef class TypeSorter:
    """Sorts types of one BTF, none of whose references lead back to themselves."""

    def __cinit__(self, BtfReader btf):
        self.btf = btf

    def __dealloc__(self):
        free(self.hashes)
        free(self.hashed)

    cdef int rank(self, uint32_t id) noexcept:
        cdef const uint32_t *record
        cdef unsigned int kind
        cdef bint named = False
        while True:
            record = self.btf.types[id]
            kind = kind_of(record)
            named = named or record[0] != 0
            if kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
                return named
            if kind == BTF_KIND_INT or kind == BTF_KIND_FLOAT:
                return 2
            if not named:
                return RANK_LAST
            if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
                return 3
            if kind == BTF_KIND_FUNC_PROTO:
                return 4
            if not refers(kind):
                return RANK_LAST
            id = record[RECORD] if kind == BTF_KIND_ARRAY else record[2]

    cdef const char *sort_name(self, uint32_t id) noexcept:
        cdef const uint32_t *record = self.btf.types[id]
        cdef unsigned int kind = kind_of(record)
        if record[0] == 0 and vlen_of(record) and (kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64):
            return self.btf.string(record[RECORD])  # the first enumerator stands for all of them
        while refers(kind):
            record = self.btf.types[record[RECORD] if kind == BTF_KIND_ARRAY else record[2]]
            kind = kind_of(record)
        return self.btf.string(record[0])

    cdef int fill(self, uint32_t id, SortKey *key) noexcept:
        cdef const char *name = self.sort_name(id)
        key.id = id
        key.rank = self.rank(id)
        key.sort_name = name
        key.own_name = self.btf.string(self.btf.types[id][0])
        key.prefix = 0
        for _ in range(8):
            key.prefix <<= 8
            if name[0]:
                key.prefix |= <uint8_t>name[0]
                name += 1
        return 0

    cdef bint before(self, const SortKey *left, const SortKey *right) except -1:
        cdef uint64_t left_hash, right_hash
        cdef int order
        if left.rank != right.rank:
            return left.rank < right.rank
        if left.prefix != right.prefix:
            return left.prefix < right.prefix
        order = strcmp(left.sort_name, right.sort_name)
        if order == 0:
            order = strcmp(left.own_name, right.own_name)
        if order:
            return order < 0
        left_hash = self.disambiguate(left.id, True, 0)
        right_hash = self.disambiguate(right.id, True, 0)
        if left_hash != right_hash:
            return left_hash < right_hash
        return left.id < right.id

    cdef uint64_t disambiguate(self, uint32_t id, bint members, int depth) except? 0:
        """A hash over the names in a type; with `members`, over those of its members' types too."""
        cdef size_t slot = <size_t>id * 2 + members
        if self.hashes == NULL:
            self.hashed = <uint8_t *>calloc(<size_t>self.btf.total * 2, 1)
            self.hashes = <uint64_t *>malloc(<size_t>self.btf.total * 2 * sizeof(uint64_t))
            if self.hashes == NULL or self.hashed == NULL:
                raise MemoryError
        if not self.hashed[slot]:
            self.hashes[slot] = self.hash_of(id, members, depth)
            self.hashed[slot] = True
        return self.hashes[slot]

    cdef uint64_t hash_of(self, uint32_t id, bint members, int depth) except? 0:
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *part = record + RECORD
        cdef unsigned int kind = kind_of(record)
        cdef uint64_t hash = self.add_name(0, record[0])
        cdef uint32_t step
        if depth > DEEPEST:
            raise self.btf.type_error(id, "too many references in a row")
        if kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
            step = ENUMERATOR if kind == BTF_KIND_ENUM else ENUMERATOR64
            for _ in range(vlen_of(record)):
                hash = self.add_name(hash, part[0])
                part += step
        elif kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            if members:
                for _ in range(vlen_of(record)):
                    hash = self.add_name(hash, part[0])
                    hash = hash * 31 + self.disambiguate(part[1], False, depth + 1)
                    part += MEMBER
        elif kind == BTF_KIND_ARRAY:
            hash = hash * 31 + part[2]
            hash = hash * 31 + self.disambiguate(part[0], members, depth + 1)
        elif refers(kind):
            hash = hash * 31 + self.disambiguate(record[2], members, depth + 1)
        return hash

    cdef uint64_t add_name(self, uint64_t hash, uint32_t offset) noexcept:
        cdef const char *name
        cdef uint64_t sum = 0
        if offset == 0:
            return hash
        name = self.btf.string(offset)
        while name[0]:
            sum = sum * 31 + <uint64_t><int8_t>name[0]  # as a char is signed where the reference runs
            name += 1
        return hash * 31 + sum

    cdef int sort(self, SortKey *keys, uint32_t count) except -1:
        """Merge sort: runs of 1, 2, 4 ... keys, from one array into the other and back."""
        cdef SortKey *spare = <SortKey *>malloc((<size_t>count + 1) * sizeof(SortKey))
        cdef SortKey *source = keys
        cdef SortKey *target = spare
        cdef uint64_t run = 1
        cdef uint64_t start, middle, end, left, right, out
        if spare == NULL:
            raise MemoryError
        try:
            while run < count:
                start = 0
                while start < count:
                    left, out = start, start
                    middle = min(start + run, <uint64_t>count)
                    end = min(middle + run, <uint64_t>count)
                    right = middle
                    while left < middle and right < end:
                        if self.before(&source[right], &source[left]):
                            target[out] = source[right]
                            right += 1
                        else:
                            target[out] = source[left]
                            left += 1
                        out += 1
                    memcpy(&target[out], &source[left], (middle - left) * sizeof(SortKey))
                    out += middle - left
                    memcpy(&target[out], &source[right], (end - right) * sizeof(SortKey))
                    start = end
                source, target = target, source
                run *= 2
            if source != keys:
                memcpy(keys, source, <size_t>count * sizeof(SortKey))
        finally:
            free(spare)
        return 0


cdef inline bint refers(unsigned int kind) noexcept nogil:
    """Whether a type of this kind is ranked and named by what it refers to."""
    return kind in (
        BTF_KIND_PTR, BTF_KIND_ARRAY, BTF_KIND_TYPEDEF, BTF_KIND_VOLATILE, BTF_KIND_CONST, BTF_KIND_RESTRICT,
        BTF_KIND_DECL_TAG, BTF_KIND_TYPE_TAG,
    )
