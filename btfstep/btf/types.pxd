# SPDX-License-Identifier: GPL-2.0-only
"""BTF types as flat arrays of plain structs, before they have their final ids.

``Type`` is the fixed part; ``Row`` is one member, enumerator or parameter.
What the fields hold depends on the kind, as in the format itself:

========== ================== ======================== =====================
kind       Type.ref           Type.extra               rows: name, type, value
========== ================== ======================== =====================
INT        size in bytes      encoding and bits
FLOAT      size in bytes
PTR, ...   referenced type
ARRAY      element type       number of elements
STRUCT     size in bytes      first row                member, type, offset
ENUM       size in bytes      first row                name, value, 0
ENUM64     size in bytes      first row                name, low, high
FUNC_PROTO return type        first row                parameter, type, 0
========== ================== ======================== =====================

PTR stands for all that refer to one type: CONST, VOLATILE, RESTRICT, TYPEDEF,
TYPE_TAG.  STRUCT stands for UNION too.  Names are numbers of a StringPool.

`Type.hash` covers names and rows, with a key that is another in each run, so
types of one hash are taken for the same without a look at their rows: for the
ten million comparisons of a kernel, the odds against it are 10^12 to one.
"""

from libc.stdint cimport uint32_t, uint64_t

from btfstep.btf.constants cimport (
    BTF_KIND_ENUM, BTF_KIND_ENUM64, BTF_KIND_FLOAT, BTF_KIND_INT, BTF_KIND_STRUCT, BTF_KIND_UNION,
)
from btfstep.btf.memory cimport mix


cdef enum:
    # In the names of members and enumerators of a record: what the merge undoes for those that it keeps.
    NEW_NAME = 1 << 31  # the output may not have had this string when the worker looked
    RAW_NAME = 1 << 30  # the rest is an offset in .debug_str


cdef struct Type:
    uint32_t name
    uint32_t info  # as in the format: kflag, kind, vlen
    uint32_t ref
    uint32_t extra
    uint64_t hash  # of what the type says by itself, without the types it refers to


cdef struct Row:
    uint32_t name
    uint32_t type
    uint32_t value


# Type.hash: `hash_type` of the fixed part, then one of the others for each row.

cdef inline uint64_t hash_type(
    unsigned int kind, uint32_t info, uint32_t name, uint32_t ref, uint32_t extra, uint64_t key
) noexcept nogil:
    cdef uint64_t h = mix(info, name, key)
    if kind == BTF_KIND_INT or kind == BTF_KIND_FLOAT:
        return mix(mix(h, ref, key), extra, key)
    if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION or kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
        return mix(h, ref, key)
    return h


cdef inline uint64_t hash_member(uint64_t h, const Row *row, uint64_t key) noexcept nogil:
    return mix(h, <uint64_t>row.name << 32 | row.value, key)


cdef inline uint64_t hash_enumerator(uint64_t h, const Row *row, uint64_t key) noexcept nogil:
    return mix(mix(h, <uint64_t>row.name << 32 | row.value, key), row.type, key)
