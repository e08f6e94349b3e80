# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only; the output is as long as `layout` counted)
"""Numbers what a settled TypeGraph holds, and writes it as BTF.

The format is that of include/uapi/linux/btf.h: a header, the types in the
order of their ids, with the ``layout`` feature a description of each kind, and
the strings.  All numbers are in the byte order of the kernel that the BTF is
about.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort

from btfstep.btf.constants cimport *
from btfstep.btf.graph cimport REF, Node, Ref, Secinfo, TypeGraph
from btfstep.btf.strings cimport FAILED, pool_offset
from btfstep.btf.types cimport Row
from btfstep.errors import EncodeError

cdef enum:
    HEADER = 24
    HEADER_WITH_LAYOUT = 32

# What follows the fixed part of each kind: bytes once, bytes for each of its vlen elements.
_LAYOUT = {
    BTF_KIND_INT: (4, 0),
    BTF_KIND_ARRAY: (12, 0),
    BTF_KIND_STRUCT: (0, 12),
    BTF_KIND_UNION: (0, 12),
    BTF_KIND_ENUM: (0, 8),
    BTF_KIND_FUNC_PROTO: (0, 8),
    BTF_KIND_VAR: (4, 0),
    BTF_KIND_DATASEC: (0, 12),
    BTF_KIND_DECL_TAG: (4, 0),
    BTF_KIND_ENUM64: (0, 12),
}
_NR_KINDS = BTF_KIND_ENUM64 + 1


cdef struct Place:
    uint64_t position
    uint32_t key


cdef int by_position(const void *a, const void *b) noexcept nogil:
    cdef uint64_t x = (<const Place *>a).position
    cdef uint64_t y = (<const Place *>b).position
    return (x > y) - (x < y)


cdef int by_offset(const void *a, const void *b) noexcept nogil:
    """By section, then by offset, then as they came."""
    cdef const Secinfo *x = <const Secinfo *>a
    cdef const Secinfo *y = <const Secinfo *>b
    if x.section != y.section:
        return -1 if x.section < y.section else 1
    if x.offset != y.offset:
        return -1 if x.offset < y.offset else 1
    return (x.order > y.order) - (x.order < y.order)


@cython.final
cdef class Writer:
    """Writes one graph; `section_names` are those of the ELF section table, for DATASEC."""

    cdef TypeGraph graph
    cdef bint big
    cdef Place *places
    cdef uint32_t nr_places
    cdef uint32_t *node_ids
    cdef uint32_t *ref_ids
    cdef uint8_t *at
    cdef list _datasecs  # (name, first, count, size)

    def __cinit__(self, TypeGraph graph not None, bint big, section_names):
        self.graph = graph
        self.big = big
        self._datasecs = []
        self.group_variables(section_names)
        self.number()

    def __dealloc__(self):
        free(self.places)
        free(self.node_ids)
        free(self.ref_ids)

    cdef int group_variables(self, section_names) except -1:
        """Sort the variables by section and offset; one DATASEC for each section."""
        cdef TypeGraph g = self.graph
        cdef uint32_t first = 0
        cdef uint32_t i
        cdef uint32_t name
        if g.nr_secinfos == 0:
            return 0
        qsort(g.secinfos, g.nr_secinfos, sizeof(Secinfo), by_offset)
        for i in range(1, g.nr_secinfos + 1):
            if i < g.nr_secinfos and g.secinfos[i].section == g.secinfos[first].section:
                continue
            text = section_names[g.secinfos[first].section]
            if i - first > BTF_MAX_VLEN:
                raise EncodeError(
                    f"section {text} holds {i - first} variables, more than BTF can list ({BTF_MAX_VLEN})"
                )
            if not text:
                raise EncodeError("variables in a section without a name, which BTF cannot express")
            name = g.strings.intern_bytes(text.encode("utf-8", "surrogateescape"))
            if g.strings.emit(name) == FAILED:
                raise MemoryError
            self._datasecs.append(
                (name, first, i - first, g.secinfos[i - 1].offset + g.secinfos[i - 1].size & 0xFFFFFFFF)
            )
            first = i
        return 0

    cdef int number(self) except -1:
        """Give ids, from the base's last on, to all types that stand for themselves, as they came."""
        cdef TypeGraph g = self.graph
        cdef uint32_t i
        self.places = <Place *>malloc((<size_t>g.nr_nodes + g.nr_refs + 1) * sizeof(Place))
        self.node_ids = <uint32_t *>calloc(<size_t>g.nr_nodes + 1, sizeof(uint32_t))
        self.ref_ids = <uint32_t *>calloc(<size_t>g.nr_refs + 1, sizeof(uint32_t))
        if not (self.places and self.node_ids and self.ref_ids):
            raise MemoryError
        for i in range(1, g.nr_base + 1):
            self.node_ids[i] = i
        for i in range(g.nr_base_refs):
            self.ref_ids[i] = <uint32_t>g.refs[i].position
        for i in range(g.nr_base + 1, g.nr_nodes):
            if g.nodes[i].map == i:
                self.places[self.nr_places].position = g.positions[i]
                self.places[self.nr_places].key = i
                self.nr_places += 1
        for i in range(g.nr_base_refs, g.nr_refs):
            if g.settled_key(REF | i) == (<uint32_t>REF | i):
                self.places[self.nr_places].position = g.refs[i].position
                self.places[self.nr_places].key = REF | i
                self.nr_places += 1
        qsort(self.places, self.nr_places, sizeof(Place), by_position)
        for i in range(self.nr_places):
            if self.places[i].key & REF:
                self.ref_ids[self.places[i].key & ~<uint32_t>REF] = g.nr_base + i + 1
            else:
                self.node_ids[self.places[i].key] = g.nr_base + i + 1
        return 0

    cdef uint32_t id_of_key(self, uint32_t key) noexcept nogil:
        key = self.graph.settled_key(key)
        return self.ref_ids[key & ~<uint32_t>REF] if key & REF else self.node_ids[key]

    cdef uint32_t id_of_node(self, uint32_t node) noexcept nogil:
        """The id of what a kept struct or typedef refers to."""
        if self.graph.ref_of[node]:
            return self.id_of_key(REF | (self.graph.ref_of[node] - 1))
        return self.node_ids[self.graph.resolve(node)]

    cdef uint32_t string(self, uint32_t name) noexcept nogil:
        return pool_offset(self.graph.strings, name)[0] if name else 0

    cdef void put(self, uint32_t value) noexcept nogil:
        cdef uint8_t *p = self.at
        if self.big:
            p[0], p[1] = <uint8_t>(value >> 24), <uint8_t>(value >> 16)
            p[2], p[3] = <uint8_t>(value >> 8), <uint8_t>value
        else:
            p[0], p[1] = <uint8_t>value, <uint8_t>(value >> 8)
            p[2], p[3] = <uint8_t>(value >> 16), <uint8_t>(value >> 24)
        self.at = p + 4

    cdef uint64_t size_of(self, uint32_t info) noexcept nogil:
        """Bytes of a type's record."""
        cdef unsigned int kind = info_kind(info)
        cdef uint64_t vlen = info_vlen(info)
        if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION or kind == BTF_KIND_ENUM64 or kind == BTF_KIND_DATASEC:
            return 12 + 12 * vlen
        if kind == BTF_KIND_ENUM or kind == BTF_KIND_FUNC_PROTO:
            return 12 + 8 * vlen
        if kind == BTF_KIND_ARRAY:
            return 24
        if kind == BTF_KIND_INT or kind == BTF_KIND_VAR or kind == BTF_KIND_DECL_TAG:
            return 16
        return 12

    cdef void write_node(self, uint32_t node) noexcept nogil:
        cdef const Node *t = &self.graph.nodes[node]
        cdef const Row *row = self.graph.rows + t.extra
        cdef unsigned int kind = info_kind(t.info)
        cdef uint32_t i
        self.put(self.string(t.name))
        self.put(t.info)
        self.put(self.id_of_node(t.ref) if kind == BTF_KIND_TYPEDEF else 0 if kind == BTF_KIND_FWD else t.ref)
        if kind == BTF_KIND_INT:
            self.put(t.extra)
        elif kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            for i in range(info_vlen(t.info)):
                self.put(self.string(row[i].name))
                self.put(self.id_of_node(row[i].type))
                self.put(row[i].value)
        elif kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
            for i in range(info_vlen(t.info)):
                self.put(self.string(row[i].name))
                self.put(row[i].type)
                if kind == BTF_KIND_ENUM64:
                    self.put(row[i].value)

    cdef void write_ref(self, uint32_t number) noexcept nogil:
        cdef const Ref *t = &self.graph.refs[number]
        cdef const Row *row
        cdef unsigned int kind = info_kind(t.info)
        cdef uint32_t i
        self.put(self.string(t.name))
        self.put(t.info)
        if kind == BTF_KIND_ARRAY:
            self.put(0)
            self.put(self.id_of_key(t.ref))
            self.put(self.id_of_node(self.graph.index_type))
            self.put(t.extra)
            return
        self.put(self.id_of_key(t.ref))
        if kind == BTF_KIND_VAR or kind == BTF_KIND_DECL_TAG:
            self.put(t.extra)
        elif kind == BTF_KIND_FUNC_PROTO:
            row = self.graph.ref_rows + t.extra
            for i in range(info_vlen(t.info)):
                self.put(self.string(row[i].name))
                self.put(self.id_of_key(row[i].type))

    def write(self, bint with_layout=False) -> bytes:
        """The whole BTF, as a ``.BTF`` section holds it.

        Raises EncodeError when it would pass 4 GiB.
        """
        cdef TypeGraph g = self.graph
        cdef uint32_t i, key, info, string_size
        cdef uint64_t size = 0
        cdef uint32_t header = HEADER_WITH_LAYOUT if with_layout else HEADER
        cdef uint32_t layout_size = 4 * _NR_KINDS if with_layout else 0
        cdef uint32_t first, count
        for i in range(self.nr_places):
            key = self.places[i].key
            info = g.refs[key & ~<uint32_t>REF].info if key & REF else g.nodes[key].info
            size += self.size_of(info)
        for _, _, length, _ in self._datasecs:
            size += 12 + 12 * <uint64_t>length
        if (size + layout_size + g.strings.emitted_size + header) >> 32:
            raise EncodeError("the BTF would be larger than 4 GiB")
        string_size = <uint32_t>(g.strings.emitted_size - g.strings.base_size)
        out = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(header + size + layout_size + string_size))
        self.at = <uint8_t *>PyBytes_AS_STRING(out)
        # magic, version, flags
        self.put(
            <uint32_t>BTF_MAGIC << 16 | BTF_VERSION << 8 if self.big else BTF_MAGIC | BTF_VERSION << 16
        )
        self.put(header)
        self.put(0)
        self.put(<uint32_t>size)
        self.put(<uint32_t>size + layout_size)
        self.put(string_size)
        if with_layout:
            self.put(<uint32_t>size)
            self.put(layout_size)
        with nogil:
            for i in range(self.nr_places):
                key = self.places[i].key
                if key & REF:
                    self.write_ref(key & ~<uint32_t>REF)
                else:
                    self.write_node(key)
        for name, first, count, length in self._datasecs:
            self.put(self.string(name))
            self.put(make_info(BTF_KIND_DATASEC, count, False))
            self.put(length)
            for i in range(first, first + count):
                self.put(self.id_of_key(REF | g.secinfos[i].variable))
                self.put(g.secinfos[i].offset)
                self.put(g.secinfos[i].size)
        if with_layout:
            for i in range(_NR_KINDS):
                once, each = _LAYOUT.get(i, (0, 0))
                self.at[0], self.at[1], self.at[2], self.at[3] = once, each, 0, 0
                self.at += 4
        g.strings.write_section(self.at)
        return out

    @property
    def nr_types(self) -> int:
        """How many types the BTF has, void not counted."""
        return self.nr_places + len(self._datasecs)
