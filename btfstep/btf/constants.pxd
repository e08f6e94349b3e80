# SPDX-License-Identifier: GPL-2.0-only
"""The BTF format's constants, by the names of include/uapi/linux/btf.h."""

from libc.stdint cimport uint32_t

cdef enum:
    BTF_MAGIC = 0xEB9F
    BTF_VERSION = 1

    BTF_KIND_INT = 1
    BTF_KIND_PTR = 2
    BTF_KIND_ARRAY = 3
    BTF_KIND_STRUCT = 4
    BTF_KIND_UNION = 5
    BTF_KIND_ENUM = 6
    BTF_KIND_FWD = 7
    BTF_KIND_TYPEDEF = 8
    BTF_KIND_VOLATILE = 9
    BTF_KIND_CONST = 10
    BTF_KIND_RESTRICT = 11
    BTF_KIND_FUNC = 12
    BTF_KIND_FUNC_PROTO = 13
    BTF_KIND_VAR = 14
    BTF_KIND_DATASEC = 15
    BTF_KIND_FLOAT = 16
    BTF_KIND_DECL_TAG = 17
    BTF_KIND_TYPE_TAG = 18
    BTF_KIND_ENUM64 = 19

    BTF_INT_SIGNED = 1
    BTF_INT_BOOL = 4

    BTF_VAR_STATIC = 0
    BTF_VAR_GLOBAL_ALLOCATED = 1

    BTF_MAX_VLEN = 0xFFFF
    BTF_MAX_TYPE = 0x7FFFFFFF


cdef inline uint32_t make_info(unsigned int kind, unsigned int vlen, bint kflag) noexcept nogil:
    return (<uint32_t>kflag << 31) | (<uint32_t>kind << 24) | (vlen & 0xFFFF)


cdef inline unsigned int info_kind(uint32_t info) noexcept nogil:
    return (info >> 24) & 0x1F


cdef inline unsigned int info_vlen(uint32_t info) noexcept nogil:
    return info & 0xFFFF
