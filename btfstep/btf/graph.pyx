# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only.  Local type ids in a record are at most its `nr_types`, which
# the walk guarantees; every other index was given out by this module.)
"""The deduplication of `graph.pxd`."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memmove, memset, strlen

from btfstep.btf.constants cimport *
from btfstep.btf.memory cimport mix, prefetch, reserve
from btfstep.btf.reader cimport BtfReader, kind_of, vlen_of
from btfstep.btf.strings cimport FAILED, pool_at, pool_text
from btfstep.btf.types cimport NEW_NAME, RAW_NAME, Row, Type, hash_enumerator, hash_member, hash_type
from btfstep.dwarf.sections cimport SEC_INFO, fail, fail_memory
from btfstep.encode.record cimport Record, SavedFunction, Variable
from btfstep.errors import FormatError, UsageError

cdef enum:
    IN_PROGRESS = 0xFFFFFFFE
    AHEAD = 4  # nodes from one step of `fetch_group` to the next
    # How deep libbpf compares what the compiler wrote twice within one unit.
    IDENTICAL_DEPTH = 16
    # Steps of one such comparison; real ones take a few thousand.
    IDENTICAL_WORK = 1 << 24
    # Steps of all comparisons: so many, and so many for each type and row.
    # Kernels take a few for each; what runs out is made to take forever.
    # Modules take up to a hundred times as many if their base is not quite
    # the one that they were built for.
    FREE_STEPS = 1 << 24
    STEPS_PER_TYPE = 64
    STEPS_PER_ROW = 16
    BASE_FACTOR = 4
    # Pairs that are known to be unequal: so many, and those of a unit are few.
    MAX_UNEQUAL = 1 << 20
    # What fails sooner is not worth to be remembered.
    NOTABLE_STEPS = 64
    FOREVER = 0xFFFFFFFF
    # Why a comparison fails: for what two types are; the same, but what they
    # are equal to may be equal; for what it assumed before.
    UNEQUAL = 0
    UNEQUAL_SO_FAR = 1
    CONFLICT = 2


cdef inline bint is_primitive(unsigned int kind) noexcept nogil:
    return (
        kind == BTF_KIND_INT or kind == BTF_KIND_ENUM or kind == BTF_KIND_FWD or kind == BTF_KIND_FLOAT
        or kind == BTF_KIND_ENUM64
    )


cdef inline bint is_composite(unsigned int kind) noexcept nogil:
    return kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION


cdef inline bint is_enum(unsigned int kind) noexcept nogil:
    return kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64


cdef inline bint is_reference(unsigned int kind) noexcept nogil:
    """What pass 3 merges."""
    return (
        kind == BTF_KIND_PTR or kind == BTF_KIND_CONST or kind == BTF_KIND_ARRAY or kind == BTF_KIND_FUNC_PROTO
        or kind == BTF_KIND_VOLATILE or kind == BTF_KIND_RESTRICT or kind == BTF_KIND_TYPE_TAG
    )


cdef inline bint is_enum_forward(const Node *t) noexcept nogil:
    return is_enum(info_kind(t.info)) and info_vlen(t.info) == 0


cdef inline unsigned int forward_kind(const Node *t) noexcept nogil:
    """The kind that a forward declaration stands for."""
    return BTF_KIND_UNION if t.info >> 31 else BTF_KIND_STRUCT


cdef uint32_t growths(uint32_t size) noexcept nogil:
    """How often libbpf's table has grown by the time it holds `size` entries.

    It doubles when three quarters are full, and on the way turns the order of
    the entries in each bucket around.
    """
    cdef uint32_t count = 0
    cdef uint64_t at = 3
    if size == 0:
        return 0
    count = 1
    while at < size:
        count += 1
        at *= 2
    return count


cdef int duplicate(void **array, uint32_t *cap, const void *source, uint32_t count, size_t element) except -1:
    """Make `array` hold a copy of `count` elements of `source`."""
    if reserve(array, cap, count, element) < 0:
        raise MemoryError
    if count:
        memcpy(array[0], source, <size_t>count * element)
    return 0


cdef inline uint32_t resolved(const Node *nodes, uint32_t node) noexcept nogil:
    cdef uint32_t next = nodes[node].map
    while next != NONE and next != node:
        node = next
        next = nodes[node].map
    return node


cdef class TypeGraph:
    """Collects units and holds the deduplicated types.

    `assumed_primitives`: how many types pass 1 will keep in all.  It is known
    only afterwards, and matters only where several candidates fit one struct;
    `choices_hold` says whether the assumption did.

    `base`: what the result is split from.  Its types are there already, and
    nothing changes them.
    """

    def __cinit__(self, StringPool strings not None, uint32_t assumed_primitives=0, BtfReader base=None):
        self.strings = strings
        self.assumed_primitives = assumed_primitives
        self.name_int = strings.intern_bytes(b"int")
        self.primitive_mask = self.group_mask = self.ref_mask = (1 << 14) - 1
        self.unequal_mask = (1 << 10) - 1
        self.unequal = <Unequal *>calloc(<size_t>self.unequal_mask + 1, sizeof(Unequal))
        self.primitive_slots = <uint32_t *>calloc(<size_t>self.primitive_mask + 1, sizeof(uint32_t))
        self.group_slots = <uint32_t *>calloc(<size_t>self.group_mask + 1, sizeof(uint32_t))
        self.ref_slots = <uint32_t *>calloc(<size_t>self.ref_mask + 1, sizeof(uint32_t))
        if not (self.primitive_slots and self.group_slots and self.ref_slots and self.unequal):
            raise MemoryError
        if self.reserve_nodes(1) < 0:
            raise MemoryError
        memset(&self.nodes[0], 0, sizeof(Node))  # void
        self.positions[0] = 0
        self.nodes[0].map = 0
        self.nodes[0].hypothesis = NONE
        self.ref_of[0] = 0
        self.nr_nodes = 1
        self.budget = FREE_STEPS
        if base is not None:
            self.load_base(base)

    def __dealloc__(self):
        free(self.nodes)
        free(self.rows)
        free(self.likely)
        free(self.positions)
        free(self.ref_of)
        free(self.forward)
        free(self.assumed)
        free(self.touched)
        free(self.pairs)
        free(self.unequal)
        free(self.steps)
        free(self.primitives)
        free(self.primitive_slots)
        free(self.stay)
        free(self.groups)
        free(self.group_slots)
        free(self.candidates)
        free(self.choices)
        free(self.refs)
        free(self.ref_rows)
        free(self.ref_slots)
        free(self.representative)
        free(self.secinfos)

    # The base

    cdef TypeGraph copy(self, StringPool strings, uint32_t assumed_primitives):
        """A graph with the same base, which no unit was added to; `strings`: a copy of this one's pool."""
        cdef TypeGraph new = TypeGraph(strings, assumed_primitives)
        duplicate(<void **>&new.nodes, &new.nodes_cap, self.nodes, self.nr_nodes, sizeof(Node))
        duplicate(<void **>&new.rows, &new.rows_cap, self.rows, self.nr_rows, sizeof(Row))
        duplicate(<void **>&new.positions, &new.positions_cap, self.positions, self.nr_nodes, sizeof(uint64_t))
        duplicate(<void **>&new.ref_of, &new.ref_of_cap, self.ref_of, self.nr_nodes, sizeof(uint32_t))
        duplicate(<void **>&new.primitives, &new.primitives_cap, self.primitives, self.nr_primitives, sizeof(uint32_t))
        duplicate(<void **>&new.groups, &new.groups_cap, self.groups, self.nr_groups, sizeof(Group))
        duplicate(<void **>&new.candidates, &new.candidates_cap, self.candidates, self.nr_candidates, sizeof(Candidate))
        duplicate(<void **>&new.refs, &new.refs_cap, self.refs, self.nr_refs, sizeof(Ref))
        duplicate(<void **>&new.ref_rows, &new.ref_rows_cap, self.ref_rows, self.nr_ref_rows, sizeof(Row))
        # Tables are as long as their masks say; refs enter theirs in `settle`.
        free(new.primitive_slots)
        free(new.group_slots)
        new.primitive_slots = new.group_slots = NULL
        new.primitive_slots = <uint32_t *>malloc((<size_t>self.primitive_mask + 1) * sizeof(uint32_t))
        new.group_slots = <uint32_t *>malloc((<size_t>self.group_mask + 1) * sizeof(uint32_t))
        if new.primitive_slots == NULL or new.group_slots == NULL:
            raise MemoryError
        memcpy(new.primitive_slots, self.primitive_slots, (<size_t>self.primitive_mask + 1) * sizeof(uint32_t))
        memcpy(new.group_slots, self.group_slots, (<size_t>self.group_mask + 1) * sizeof(uint32_t))
        new.primitive_mask = self.primitive_mask
        new.group_mask = self.group_mask
        new.nr_nodes = self.nr_nodes
        new.nr_rows = self.nr_rows
        new.nr_primitives = self.nr_primitives
        new.nr_groups = self.nr_groups
        new.nr_candidates = self.nr_candidates
        new.nr_refs = self.nr_refs
        new.nr_ref_rows = self.nr_ref_rows
        new.nr_base = self.nr_base
        new.nr_base_entries = self.nr_base_entries
        new.nr_base_primitives = self.nr_base_primitives
        new.nr_base_refs = self.nr_base_refs
        new.position = self.position
        new.budget = self.budget
        return new

    cdef int load_base(self, BtfReader base) except -1:
        """Make the base's types the first nodes, and candidates for whatever comes."""
        cdef uint32_t count = base.total - 1
        cdef uint32_t id, slot
        cdef unsigned int kind
        cdef const Node *t
        cdef Group *group
        cdef uint32_t *names
        if base.base is not None:
            raise UsageError("is split BTF itself, and cannot be a base", path=base.path)
        if self.reserve_nodes(<uint64_t>count + 1) < 0:
            raise MemoryError
        names = <uint32_t *>calloc(<size_t>(base.text_end >> 2) + 1, sizeof(uint32_t))
        if names == NULL:
            raise MemoryError
        self.strings.work += base.text_end
        try:
            self.strings.use_base(<const uint8_t *>base.text, base.text_end, names)
            self.load_base_nodes(base, names)
            self.load_base_refs(base, names)
        finally:
            free(names)
        for id in range(1, count + 1):
            t = &self.nodes[id]
            kind = info_kind(t.info)
            if kind == BTF_KIND_VAR or kind == BTF_KIND_DATASEC:
                continue
            # Typedefs of a base are never found, since libbpf files them under
            # a hash that it does not look them up by.
            if is_enum(kind) or is_composite(kind):
                group = self.find_group(
                    id, mix(BTF_KIND_ENUM, t.name, self.strings.key) if is_enum(kind) else t.hash, is_enum(kind)
                )
                if group == NULL or self.add_candidate(group, id, self.nr_base_entries, True) < 0:
                    raise MemoryError
                if is_enum_forward(t):
                    group.has_forward = True
            if is_primitive(kind) and self.find_primitive(id, &slot) == 0 and self.keep_primitive(id) < 0:
                raise MemoryError
            self.nr_base_entries += 1
        self.nr_base_primitives = self.nr_primitives
        self.position = count
        self.budget += BASE_FACTOR * (<uint64_t>STEPS_PER_TYPE * count + <uint64_t>STEPS_PER_ROW * self.nr_rows)
        return 0

    cdef int load_base_nodes(self, BtfReader base, const uint32_t *names) except -1:
        """A node for each type of the base, with its id; `names` is what `StringPool.use_base` filled."""
        cdef const uint32_t *record
        cdef Node *t
        cdef Row *row
        cdef uint32_t id, i, vlen, step
        cdef unsigned int kind
        self.nr_base = base.total - 1
        for id in range(1, base.total):
            record = base.types[id]
            kind = kind_of(record)
            if vlen_of(record) > BTF_MAX_VLEN or kind > BTF_KIND_ENUM64:
                raise FormatError(f"type {id} is of a form that cannot be in a base", path=base.path)
            vlen = vlen_of(record)
            t = &self.nodes[id]
            t.name = self.base_name(base, names, record[0])
            t.info = record[1]
            t.ref = record[2]
            t.extra = 0
            self.append_node(id)
            t.map = id if not is_reference(kind) else NONE
            if kind == BTF_KIND_INT:
                t.extra = record[3]
            elif kind == BTF_KIND_ARRAY:
                t.ref = record[3]
                t.extra = record[5]
            t.hash = hash_type(kind, t.info, t.name, t.ref, t.extra, self.strings.key)
            if not is_composite(kind) and not is_enum(kind) and kind != BTF_KIND_FUNC_PROTO:
                continue
            if reserve(<void **>&self.rows, &self.rows_cap, <uint64_t>self.nr_rows + vlen, sizeof(Row)) < 0:
                raise MemoryError
            t.extra = self.nr_rows
            step = 3 if is_composite(kind) or kind == BTF_KIND_ENUM64 else 2
            for i in range(vlen):
                row = &self.rows[self.nr_rows + i]
                row.name = self.base_name(base, names, record[3 + i * step])
                row.type = record[4 + i * step]
                row.value = record[5 + i * step] if step == 3 else 0
                if is_composite(kind):
                    t.hash = hash_member(t.hash, row, self.strings.key)
                elif is_enum(kind):
                    t.hash = hash_enumerator(t.hash, row, self.strings.key)
            self.nr_rows += vlen
        return 0

    cdef uint32_t base_name(self, BtfReader base, const uint32_t *names, uint32_t offset) except? 0:
        cdef uint32_t name = names[offset >> 2]
        if pool_text(self.strings, name).bytes != <const uint8_t *>base.text + offset:
            # It shares the slot with another string, is there twice, or is the end of another one.
            name = self.strings.intern(<const uint8_t *>base.text + offset, strlen(base.text + offset))
            if name == FAILED:
                raise FormatError("has names that overlap too much, or too many", path=base.path)
        return name

    cdef int load_base_refs(self, BtfReader base, const uint32_t *names) except -1:
        """A ref for each type of the base that pass 3 could find; its `position` is its id."""
        cdef const uint32_t *record
        cdef const Node *t
        cdef Ref *ref
        cdef uint32_t id, i
        cdef unsigned int kind
        for id in range(1, self.nr_base + 1):
            kind = info_kind(self.nodes[id].info)
            if not (is_primitive(kind) or is_composite(kind) or kind == BTF_KIND_TYPEDEF or kind == BTF_KIND_DATASEC):
                self.nr_base_refs += 1
                self.ref_of[id] = self.nr_base_refs
        if reserve(<void **>&self.refs, &self.refs_cap, <uint64_t>self.nr_base_refs + 1, sizeof(Ref)) < 0:
            raise MemoryError
        for id in range(1, self.nr_base + 1):
            if self.ref_of[id] == 0:
                continue
            record = base.types[id]
            t = &self.nodes[id]
            kind = info_kind(t.info)
            ref = &self.refs[self.nr_refs]
            self.nr_refs += 1
            ref.position = id
            ref.name = t.name
            ref.info = t.info
            ref.ref = self.node_key(t.ref)
            ref.extra = t.extra
            if kind == BTF_KIND_VAR or kind == BTF_KIND_DECL_TAG:
                ref.extra = record[3]
            elif kind == BTF_KIND_FUNC_PROTO:
                ref.extra = self.nr_ref_rows
                for i in range(info_vlen(t.info)):
                    if self.add_ref_row(self.rows[t.extra + i].name, self.node_key(self.rows[t.extra + i].type)) < 0:
                        raise MemoryError
            ref.hash = self.hash_ref(ref)
        return 0

    # One unit

    cdef int add_unit(self, const Record *record) noexcept nogil:
        """Merge a unit; -1 with `fault`.  `key` answers for it until the next one."""
        cdef uint32_t i
        for i in range(record.nr_new_names):
            if self.strings.emit(record.new_names[i]) == FAILED:
                return fail_memory(&self.fault)
        if self.append_unit(record) < 0 or self.merge_primitives() < 0 or self.merge_structs() < 0:
            return -1
        if self.mark_kept() < 0 or self.merge_refs() < 0 or self.merge_tags(record) < 0:
            return -1
        return 0

    cdef int reserve_nodes(self, uint64_t count) noexcept nogil:
        if (
            reserve(<void **>&self.nodes, &self.nodes_cap, count, sizeof(Node)) < 0
            or reserve(<void **>&self.positions, &self.positions_cap, count, sizeof(uint64_t)) < 0
            or reserve(<void **>&self.ref_of, &self.ref_of_cap, count, sizeof(uint32_t)) < 0
        ):
            return fail_memory(&self.fault)
        return 0

    cdef void append_node(self, uint64_t position) noexcept nogil:
        """One more node, whose Type is there already and whose room was reserved."""
        self.nodes[self.nr_nodes].map = NONE
        self.nodes[self.nr_nodes].hypothesis = NONE
        self.ref_of[self.nr_nodes] = 0
        self.positions[self.nr_nodes] = position
        self.nr_nodes += 1

    cdef int append_unit(self, const Record *r) noexcept nogil:
        """Put the unit's types behind the nodes; local id 1 becomes node `start`."""
        cdef uint32_t count = r.nr_types
        cdef uint32_t shift, i, k
        cdef unsigned int kind
        cdef const Type *type
        cdef Node *t
        cdef Row *row
        # The last unit's leavings go only now: its keys were needed until here.
        if self.move_kept() < 0:
            return -1
        self.start = self.nr_nodes
        self.start_row = self.nr_rows
        self.start_candidates = self.nr_candidates
        if self.nr_unequal:
            memset(self.unequal, 0, (<size_t>self.unequal_mask + 1) * sizeof(Unequal))
            self.nr_unequal = 0
        self.start_primitives = self.nr_primitives
        shift = self.start - 1
        if (
            self.reserve_nodes(<uint64_t>self.nr_nodes + count + 1) < 0
            or reserve(<void **>&self.rows, &self.rows_cap, <uint64_t>self.nr_rows + r.nr_rows, sizeof(Row)) < 0
            or reserve(<void **>&self.forward, &self.forward_cap, <uint64_t>count + 2, sizeof(uint32_t)) < 0
            or reserve(<void **>&self.stay, &self.stay_cap, <uint64_t>count + 2, sizeof(uint32_t)) < 0
            or reserve(<void **>&self.likely, &self.likely_cap, <uint64_t>count + 2, sizeof(uint32_t)) < 0
        ):
            return fail_memory(&self.fault)
        if <uint64_t>self.nr_nodes + count >= REF:
            return fail(&self.fault, "more types than BTF can number", SEC_INFO, 0)
        memset(self.likely, 0, <size_t>(count + 2) * sizeof(uint32_t))
        if r.nr_rows:
            memcpy(self.rows + self.nr_rows, r.rows, <size_t>r.nr_rows * sizeof(Row))
        for i in range(count):
            type = &r.types[i + 1]
            t = &self.nodes[self.start + i]
            t.hash = type.hash
            t.name = type.name
            t.info = type.info
            t.ref = type.ref
            t.extra = type.extra
            kind = info_kind(t.info)
            if is_composite(kind) or kind == BTF_KIND_FUNC_PROTO:
                t.extra += self.start_row
                row = self.rows + t.extra
                for k in range(info_vlen(t.info)):
                    if row[k].type:
                        row[k].type += shift
                if kind == BTF_KIND_FUNC_PROTO and t.ref:
                    t.ref += shift
            elif is_enum(kind):
                t.extra += self.start_row
            elif not is_primitive(kind) and t.ref:
                t.ref += shift
            self.append_node(self.position + 1 + i)
        self.nr_rows += r.nr_rows
        self.budget += (BASE_FACTOR if self.nr_base else 1) * (
            <uint64_t>STEPS_PER_TYPE * count + <uint64_t>STEPS_PER_ROW * r.nr_rows
        )
        # All arrays of the output are indexed by one type: the first "int"
        # that comes along, or one that is made up for the first array.
        if self.index_type == 0 and r.int_type:
            self.index_type = shift + r.int_type
        elif self.index_type == 0 and r.has_array:
            count += 1
            t = &self.nodes[self.nr_nodes]
            t.name = self.name_int
            t.info = make_info(BTF_KIND_INT, 0, False)
            t.ref = 4
            t.extra = <uint32_t>BTF_INT_SIGNED << 24 | 32
            t.hash = hash_type(BTF_KIND_INT, t.info, t.name, t.ref, t.extra, self.strings.key)
            self.index_type = self.nr_nodes
            self.append_node(self.position + count)
            if self.strings.emit(self.name_int) == FAILED:
                return fail_memory(&self.fault)
        self.position += count
        return 0

    cdef int spend(self, uint64_t steps) noexcept nogil:
        """Count steps of comparisons; -1 with `fault` when they run out."""
        if steps > self.budget:
            return fail(&self.fault, "too many types that differ only in what they refer to", -1, 0)
        self.budget -= steps
        return 0

    cdef uint32_t resolve(self, uint32_t node) noexcept nogil:
        """What stands for a node, as far as that is known."""
        return resolved(self.nodes, node)

    # Pass 1

    cdef bint same_primitive(self, const Node *a, const Node *b) noexcept nogil:
        cdef unsigned int kind = info_kind(a.info)
        if a.name != b.name or a.info != b.info or a.hash != b.hash:
            return False
        if kind == BTF_KIND_FWD:
            return True
        return a.ref == b.ref and (kind != BTF_KIND_INT or a.extra == b.extra)

    cdef uint32_t find_primitive(self, uint32_t node, uint32_t *slot) noexcept nogil:
        """The kept type that equals `node`, or 0 and the slot where it would go."""
        cdef const Node *t = &self.nodes[node]
        cdef uint32_t at = <uint32_t>t.hash & self.primitive_mask
        cdef uint32_t known
        while self.primitive_slots[at]:
            known = self.primitives[self.primitive_slots[at] - 1]
            if self.nodes[known].hash == t.hash and self.same_primitive(&self.nodes[known], t):
                return known
            at = (at + 1) & self.primitive_mask
        slot[0] = at
        return 0

    cdef int keep_primitive(self, uint32_t node) noexcept nogil:
        cdef uint32_t mask, i, at
        cdef uint32_t *grown
        self.nodes[node].map = node
        if reserve(
            <void **>&self.primitives, &self.primitives_cap, <uint64_t>self.nr_primitives + 1, sizeof(uint32_t)
        ) < 0:
            return fail_memory(&self.fault)
        if <uint64_t>self.nr_primitives * 2 > self.primitive_mask:
            mask = self.primitive_mask * 2 + 1
            grown = <uint32_t *>calloc(<size_t>mask + 1, sizeof(uint32_t))
            if grown == NULL:
                return fail_memory(&self.fault)
            for i in range(self.nr_primitives):
                at = <uint32_t>self.nodes[self.primitives[i]].hash & mask
                while grown[at]:
                    at = (at + 1) & mask
                grown[at] = i + 1
            free(self.primitive_slots)
            self.primitive_slots = grown
            self.primitive_mask = mask
        self.find_primitive(node, &at)
        self.primitives[self.nr_primitives] = node
        self.nr_primitives += 1
        self.primitive_slots[at] = self.nr_primitives
        return 0

    cdef int merge_primitives(self) noexcept nogil:
        cdef uint32_t node, known, slot
        cdef unsigned int kind
        for node in range(self.start, self.nr_nodes):
            kind = info_kind(self.nodes[node].info)
            if not is_primitive(kind):
                continue
            if is_enum(kind):
                if self.merge_enumeration(node) < 0:
                    return -1
                continue
            known = self.find_primitive(node, &slot)
            if known:
                self.nodes[node].map = known
            elif self.keep_primitive(node) < 0:
                return -1
        return 0

    cdef int merge_enumeration(self, uint32_t node) noexcept nogil:
        """Like other primitives, but a forward declaration gives way to what it declares."""
        cdef const Node *t = &self.nodes[node]
        cdef const Node *other
        cdef bint forward = is_enum_forward(t)
        cdef Group *group = self.find_group(node, mix(BTF_KIND_ENUM, t.name, self.strings.key), True)
        cdef uint32_t known, slot, at
        if group == NULL:
            return -1
        if not forward and not group.has_forward:
            # No forward declaration of this name: only an equal one matters.
            known = self.find_primitive(node, &slot)
            if known:
                self.nodes[node].map = known
                return 0
        else:
            self.turn(group, self.nr_base_entries + self.nr_primitives - self.nr_base_primitives)
            at = self.first_candidate(group)
            while at:
                if self.spend(1) < 0:
                    return -1
                known = self.candidates[at - 1].node
                other = &self.nodes[known]
                if forward or self.same_primitive(t, other):
                    self.nodes[node].map = known
                    return 0
                if is_enum_forward(other):
                    # Each full definition takes it over from the one before.
                    self.nodes[known].map = node
                    if self.touch(known) < 0:
                        return -1
                at = self.next_candidate(group, at)
        if forward:
            group.has_forward = True
        at = self.nr_base_entries + self.nr_primitives - self.nr_base_primitives
        if self.add_candidate(group, node, at, True) < 0:
            return -1
        return self.keep_primitive(node)

    # Groups of candidates

    cdef Group *find_group(self, uint32_t node, uint64_t hash, bint by_name) noexcept nogil:
        """The group that `node` belongs to, made if there is none; NULL with `fault`.

        `by_name`: of enumerations, which belong together by their names alone.
        """
        cdef const Node *t = &self.nodes[node]
        cdef const Node *member
        cdef Group *group
        cdef uint32_t at = <uint32_t>hash & self.group_mask
        cdef uint32_t mask, i
        cdef uint32_t *grown
        while self.group_slots[at]:
            group = &self.groups[self.group_slots[at] - 1]
            if group.hash == hash:
                member = &self.nodes[group.node]
                if is_enum(info_kind(member.info)) == by_name:
                    if member.name == t.name if by_name else self.alike(member, t):
                        return group
            at = (at + 1) & self.group_mask
        if <uint64_t>self.nr_groups * 2 > self.group_mask:
            mask = self.group_mask * 2 + 1
            grown = <uint32_t *>calloc(<size_t>mask + 1, sizeof(uint32_t))
            if grown == NULL:
                fail_memory(&self.fault)
                return NULL
            for i in range(self.nr_groups):
                at = <uint32_t>self.groups[i].hash & mask
                while grown[at]:
                    at = (at + 1) & mask
                grown[at] = i + 1
            free(self.group_slots)
            self.group_slots = grown
            self.group_mask = mask
            at = <uint32_t>hash & mask
            while grown[at]:
                at = (at + 1) & mask
        if reserve(<void **>&self.groups, &self.groups_cap, <uint64_t>self.nr_groups + 1, sizeof(Group)) < 0:
            fail_memory(&self.fault)
            return NULL
        group = &self.groups[self.nr_groups]
        self.nr_groups += 1
        memset(group, 0, sizeof(Group))
        group.hash = hash
        group.node = node
        self.group_slots[at] = self.nr_groups
        return group

    cdef void turn(self, Group *group, uint32_t size) noexcept nogil:
        """Bring the group's order to where libbpf's is when its table holds `size` entries."""
        cdef uint32_t epoch = growths(size)
        if (epoch - group.epoch) & 1:
            group.reversed = not group.reversed
        group.epoch = epoch

    cdef uint32_t table_size(self) noexcept nogil:
        """Entries of libbpf's table in pass 2, as far as is known."""
        return self.nr_base_entries + self.assumed_primitives + self.nr_structs

    cdef int add_candidate(self, Group *group, uint32_t node, uint32_t when, bint known) noexcept nogil:
        """Put a candidate first."""
        cdef Candidate *new
        cdef uint32_t index = self.nr_candidates + 1
        if reserve(<void **>&self.candidates, &self.candidates_cap, index, sizeof(Candidate)) < 0:
            return fail_memory(&self.fault)
        # A table that grows does so before it takes the entry in.
        self.turn(group, (when if known else self.table_size()) + 1)
        new = &self.candidates[index - 1]
        new.node = node
        new.when = when
        new.known = known
        new.before = new.behind = new.younger = 0
        new.group = <uint32_t>(group - self.groups)
        self.nr_candidates = index
        group.count += 1
        if group.front == 0:
            group.front = group.back = group.oldest = group.youngest = index
            return 0
        self.candidates[group.youngest - 1].younger = index
        group.youngest = index
        if group.reversed:
            new.before = group.back
            self.candidates[group.back - 1].behind = index
            group.back = index
        else:
            new.behind = group.front
            self.candidates[group.front - 1].before = index
            group.front = index
        return 0

    cdef uint32_t first_candidate(self, const Group *group) noexcept nogil:
        """Index + 1 of the one to try first; 0: none."""
        return group.back if group.reversed else group.front

    cdef uint32_t next_candidate(self, const Group *group, uint32_t at) noexcept nogil:
        return self.candidates[at - 1].before if group.reversed else self.candidates[at - 1].behind

    cdef int note_choice(self, const Group *group) noexcept nogil:
        """Several candidates fit: remember that their order mattered here."""
        cdef Choice *choice
        if reserve(<void **>&self.choices, &self.choices_cap, <uint64_t>self.nr_choices + 1, sizeof(Choice)) < 0:
            return fail_memory(&self.fault)
        choice = &self.choices[self.nr_choices]
        self.nr_choices += 1
        choice.group = <uint32_t>(group - self.groups)
        choice.count = group.count
        choice.when = self.nr_structs
        return 0

    cdef bint choice_holds(self, const Choice *choice) noexcept nogil:
        """Whether the order was then the same as with the right number of primitives.

        It was if between the arrivals of any two candidates, and up to the
        choice, the table grew an even number of times in both or an odd one.
        """
        cdef const Group *group = &self.groups[choice.group]
        cdef const Candidate *candidate
        cdef uint32_t at = group.oldest
        cdef uint32_t wrong_then = 0
        cdef uint32_t right_then = 0
        cdef uint32_t wrong = self.nr_base_entries + self.assumed_primitives
        cdef uint32_t right = self.nr_base_entries + self.nr_primitives - self.nr_base_primitives
        cdef uint32_t wrong_now, right_now, i
        for i in range(choice.count + 1):
            if i < choice.count:
                candidate = &self.candidates[at - 1]
                wrong_now = growths((0 if candidate.known else wrong) + candidate.when + 1)
                right_now = growths((0 if candidate.known else right) + candidate.when + 1)
                at = candidate.younger
            else:
                wrong_now = growths(wrong + choice.when)
                right_now = growths(right + choice.when)
            if i and ((wrong_now - wrong_then) ^ (right_now - right_then)) & 1:
                return False
            wrong_then, right_then = wrong_now, right_now
        return True

    @property
    def is_empty(self) -> bool:
        """Whether no unit had any type or variable."""
        return self.position == self.nr_base

    @property
    def kept_primitives(self) -> int:
        """How many types pass 1 has kept so far, those of the base aside."""
        return self.nr_primitives - self.nr_base_primitives

    def choices_hold(self) -> bool:
        """Whether every choice among several candidates was libbpf's, now that all units are in."""
        cdef uint32_t i
        if self.assumed_primitives != self.nr_primitives - self.nr_base_primitives:
            for i in range(self.nr_choices):
                if not self.choice_holds(&self.choices[i]):
                    return False
        return True

    # Pass 2

    cdef bint alike(self, const Node *a, const Node *b) noexcept nogil:
        """Whether two structs, unions or typedefs look the same, apart from the types they refer to."""
        if a.hash != b.hash or a.name != b.name or a.info != b.info:
            return False
        return a.ref == b.ref or not is_composite(info_kind(a.info))

    cdef int merge_structs(self) noexcept nogil:
        cdef uint32_t node
        cdef unsigned int kind
        for node in range(self.start, self.nr_nodes):
            self.fetch_group(node)
            kind = info_kind(self.nodes[node].info)
            if (is_composite(kind) or kind == BTF_KIND_TYPEDEF) and self.nodes[node].map == NONE:
                if self.merge_struct(node) < 0:
                    return -1
        return 0

    cdef void fetch_group(self, uint32_t node) noexcept nogil:
        """Have the processor fetch, in three steps, what the search for later nodes' groups will look at.

        Without it the merge waits for memory during a tenth of its time.
        """
        cdef uint32_t index
        if node + 3 * AHEAD < self.nr_nodes:
            prefetch(&self.group_slots[<uint32_t>self.nodes[node + 3 * AHEAD].hash & self.group_mask])
            index = self.group_slots[<uint32_t>self.nodes[node + 2 * AHEAD].hash & self.group_mask]
            if index:
                prefetch(&self.groups[index - 1])
            index = self.group_slots[<uint32_t>self.nodes[node + AHEAD].hash & self.group_mask]
            if index:
                prefetch(&self.nodes[self.groups[index - 1].node])

    cdef int merge_struct(self, uint32_t node) noexcept nogil:
        """Find an earlier struct, union or typedef that is the same, or keep this one."""
        cdef Group *group = self.find_group(node, self.nodes[node].hash, False)
        cdef uint32_t chosen = 0
        cdef uint32_t at
        cdef bint others = False  # a candidate was compared after the chosen one
        cdef int equal
        if group == NULL:
            return -1
        self.turn(group, self.table_size())
        at = self.first_candidate(group)
        while at:
            equal = self.equivalent(node, self.candidates[at - 1].node)
            if equal < 0:
                return -1
            if equal and self.adjusts_base:
                # A base does not change, so this is another type; but what
                # its declarations mean for us is known from here on.
                if not chosen and self.accept() < 0:
                    return -1
                equal = 0
            if chosen:
                others = True
                if equal:
                    if self.note_choice(group) < 0:
                        return -1
                    break
            elif equal:
                chosen = at
            at = self.next_candidate(group, at)
        if chosen == 0:
            self.nodes[node].map = node
            if self.add_candidate(group, node, self.nr_structs, False) < 0:
                return -1
            self.nr_structs += 1
            return 0
        if others and self.equivalent(node, self.candidates[chosen - 1].node) < 0:
            return -1
        if self.accept() < 0:
            return -1
        self.nodes[node].map = self.candidates[chosen - 1].node
        return 0

    cdef void forget(self) noexcept nogil:
        cdef uint32_t i
        for i in range(self.nr_assumed):
            self.nodes[self.assumed[i]].hypothesis = NONE
        self.nr_assumed = 0
        self.adjusts_base = False

    cdef int equivalent(self, uint32_t candidate, uint32_t canonical) noexcept nogil:
        """Compare two graphs side by side; 1: the same, as `hypothesis` says node by node; 0: not; -1: `fault`.

        An explicit stack: kernels are thousands of types deep.
        """
        cdef Pair *pair
        cdef const Node *a
        cdef const Node *b
        cdef const Row *x
        cdef const Row *y
        cdef uint32_t i, count
        cdef int equal
        cdef uint64_t before = self.budget
        self.forget()
        self.nr_pairs = 0
        equal = self.compare(candidate, canonical)
        if equal != 2:
            return equal
        while self.nr_pairs:
            pair = &self.pairs[self.nr_pairs - 1]
            a = &self.nodes[pair.candidate]
            b = &self.nodes[pair.canonical]
            x = self.rows + a.extra
            y = self.rows + b.extra
            i = pair.next
            count = info_vlen(a.info)
            equal = 1
            if i == 0 and info_kind(a.info) == BTF_KIND_FUNC_PROTO:
                equal = self.compare(a.ref, b.ref)
            # A prototype's parameters count from 1, behind the return type.
            if info_kind(a.info) == BTF_KIND_FUNC_PROTO:
                i = max(i, <uint32_t>1)
                x -= 1
                y -= 1
                count += 1
            while equal == 1 and i < count:
                if i + AHEAD < count:
                    prefetch(&self.nodes[y[i + AHEAD].type])
                # Members of one type are most of all, and worth a check before the call.
                if resolved(self.nodes, x[i].type) != resolved(self.nodes, y[i].type):
                    equal = self.compare(x[i].type, y[i].type)
                i += 1
            if equal == 1:
                self.nr_pairs -= 1
            elif equal == 2:
                # One level down first; this pair now lies under a new one.
                self.pairs[self.nr_pairs - 2].next = i
            elif equal == 0 and before - self.budget > NOTABLE_STEPS:
                return self.mark_unequal()
            else:
                return equal
        return 1

    cdef uint32_t find_unequal(self, uint64_t pair) noexcept nogil:
        """The slot of a pair, empty if it was never found unequal."""
        cdef uint32_t at = <uint32_t>mix(0, pair, self.strings.key) & self.unequal_mask
        while self.unequal[at].pair and self.unequal[at].pair != pair:
            at = (at + 1) & self.unequal_mask
        return at

    cdef int mark_unequal(self) noexcept nogil:
        """The last comparison failed: so will others that reach the pairs which led there; 0, or -1 with `fault`.

        One type that a module has otherwise than its base can be reached from
        most others, each of which would walk there anew.  What the last pair
        failed of stays so, but a comparison may come to pass by it: one where
        a declaration was followed, once types further up were merged.
        """
        cdef uint32_t i = self.nr_pairs
        cdef uint32_t until = FOREVER if self.failure == UNEQUAL else self.merges
        cdef uint32_t at
        cdef uint64_t pair
        if self.failure == CONFLICT:
            return 0
        if self.spend(self.nr_pairs) < 0:
            return -1
        while i:
            i -= 1
            pair = <uint64_t>self.pairs[i].candidate << 32 | self.pairs[i].canonical
            at = self.find_unequal(pair)
            if self.unequal[at].pair == 0:
                self.unequal[at].pair = pair
                self.unequal[at].until = until
                self.nr_unequal += 1
                if <uint64_t>self.nr_unequal * 2 > self.unequal_mask and self.grow_unequal() < 0:
                    return -1
            elif self.unequal[at].until != FOREVER:
                self.unequal[at].until = until
            if self.pairs[i].followed:
                until = self.merges
        return 0

    cdef int grow_unequal(self) noexcept nogil:
        cdef Unequal *old = self.unequal
        cdef uint32_t size = self.unequal_mask + 1
        cdef uint32_t i
        if size >= 2 * MAX_UNEQUAL:
            # It is only there to save work.
            memset(self.unequal, 0, <size_t>size * sizeof(Unequal))
            self.nr_unequal = 0
            return 0
        self.unequal = <Unequal *>calloc(<size_t>size * 2, sizeof(Unequal))
        if self.unequal == NULL:
            self.unequal = old
            return fail_memory(&self.fault)
        self.unequal_mask = size * 2 - 1
        for i in range(size):
            if old[i].pair:
                self.unequal[self.find_unequal(old[i].pair)] = old[i]
        free(old)
        return 0

    cdef int compare(self, uint32_t candidate, uint32_t canonical) noexcept nogil:
        """One pair: 0 or 1 where that is known at once, 2 when its children are next, -1 with `fault`."""
        cdef const Node *a
        cdef const Node *b
        cdef Pair *pair
        cdef uint32_t known, i
        cdef unsigned int kind, other
        cdef bint followed = False
        cdef const Unequal *found
        self.failure = UNEQUAL
        # Along what refers to one type; structs and prototypes end the loop.
        while True:
            if self.spend(1) < 0:
                return -1
            if self.resolve(candidate) == self.resolve(canonical):
                return 1
            if info_kind(self.nodes[canonical].info) == BTF_KIND_FWD:
                # A declaration that has found its struct is followed, on this side only.
                known = self.resolve(canonical)
                if info_kind(self.nodes[known].info) != BTF_KIND_FWD:
                    canonical = known
                    followed = True
                    self.failure = UNEQUAL_SO_FAR
            known = self.nodes[canonical].hypothesis
            if known != NONE:
                # Compilers write some types twice in one unit.
                if known == candidate:
                    return 1
                self.work = IDENTICAL_WORK
                i = self.identical(known, candidate, IDENTICAL_DEPTH)
                self.failure = CONFLICT
                return -1 if self.spend(IDENTICAL_WORK - self.work) < 0 else <int>i
            if reserve(<void **>&self.assumed, &self.assumed_cap, <uint64_t>self.nr_assumed + 1, sizeof(uint32_t)) < 0:
                return fail_memory(&self.fault)
            self.assumed[self.nr_assumed] = canonical
            self.nr_assumed += 1
            self.nodes[canonical].hypothesis = candidate
            a = &self.nodes[candidate]
            b = &self.nodes[canonical]
            if a.name != b.name:
                return 0
            kind = info_kind(a.info)
            other = info_kind(b.info)
            if kind != other:
                if kind == BTF_KIND_FWD:
                    return forward_kind(a) == other
                if other != BTF_KIND_FWD or forward_kind(b) != kind:
                    return 0
                if canonical <= self.nr_base:
                    self.adjusts_base = True
                return 1
            if is_enum(kind):
                # One that is only declared is equal to both.
                self.failure = UNEQUAL_SO_FAR
                return is_enum_forward(a) or is_enum_forward(b) or self.same_primitive(a, b)
            if is_primitive(kind):
                return self.same_primitive(a, b)
            if is_composite(kind):
                if not self.alike(a, b):
                    return 0
                if self.nr_unequal:
                    found = &self.unequal[self.find_unequal(<uint64_t>candidate << 32 | canonical)]
                    if found.pair and found.until == FOREVER:
                        return 0
                    if found.pair and found.until == self.merges:
                        self.failure = UNEQUAL_SO_FAR
                        return 0
                break
            if kind == BTF_KIND_ARRAY:
                if a.extra != b.extra:
                    return 0
            elif a.info != b.info:
                return 0
            elif kind == BTF_KIND_FUNC_PROTO:
                for i in range(info_vlen(a.info)):
                    if self.rows[a.extra + i].name != self.rows[b.extra + i].name:
                        return 0
                break
            candidate, canonical = a.ref, b.ref
        if self.spend(info_vlen(a.info)) < 0:
            return -1
        if reserve(<void **>&self.pairs, &self.pairs_cap, <uint64_t>self.nr_pairs + 1, sizeof(Pair)) < 0:
            return fail_memory(&self.fault)
        pair = &self.pairs[self.nr_pairs]
        self.nr_pairs += 1
        pair.candidate = candidate
        pair.canonical = canonical
        pair.next = 0
        pair.followed = followed
        return 2

    cdef bint identical(self, uint32_t a_id, uint32_t b_id, int depth) noexcept nogil:
        """Whether two types of one unit are the same, looking `depth` levels down.

        Elements of arrays are not looked at, which is libbpf's behaviour.
        """
        cdef const Node *a
        cdef const Node *b
        cdef const Row *x
        cdef const Row *y
        cdef unsigned int kind
        cdef uint32_t i
        while depth > 0 and self.work > 0:
            self.work -= 1
            a = &self.nodes[a_id]
            b = &self.nodes[b_id]
            kind = info_kind(a.info)
            if kind != info_kind(b.info):
                return False
            if kind == 0:
                return True
            if is_enum(kind):
                if is_enum_forward(a) or is_enum_forward(b):
                    return a.name == b.name
                return self.same_primitive(a, b)
            if is_primitive(kind):
                return self.same_primitive(a, b)
            if kind == BTF_KIND_ARRAY:
                return a.extra == b.extra
            if not is_composite(kind) and kind != BTF_KIND_FUNC_PROTO:
                # What refers to one type is no level of its own in libbpf; a
                # cycle of such ends when the work runs out.
                if a.info != b.info or a.name != b.name:
                    return False
                a_id, b_id = a.ref, b.ref
                continue
            self.work -= min(self.work, <uint64_t>info_vlen(a.info))
            x = self.rows + a.extra
            y = self.rows + b.extra
            if is_composite(kind):
                if not self.alike(a, b):
                    return False
            else:
                if a.info != b.info:
                    return False
                for i in range(info_vlen(a.info)):
                    if x[i].name != y[i].name:
                        return False
                if a.ref != b.ref and not self.identical(a.ref, b.ref, depth - 1):
                    return False
            for i in range(info_vlen(a.info)):
                if x[i].type != y[i].type and not self.identical(x[i].type, y[i].type, depth - 1):
                    return False
            return True
        return False

    cdef int touch(self, uint32_t node) noexcept nogil:
        """The node was mapped anew: if it is older than the unit, `move_kept` has to look at it."""
        if node >= self.start:
            return 0
        if reserve(<void **>&self.touched, &self.touched_cap, <uint64_t>self.nr_touched + 1, sizeof(uint32_t)) < 0:
            return fail_memory(&self.fault)
        self.touched[self.nr_touched] = node
        self.nr_touched += 1
        return 0

    cdef int accept(self) noexcept nogil:
        """The last comparison succeeded: make its hypotheses facts."""
        cdef uint32_t i, canonical, target
        cdef unsigned int kind, other
        self.merges += 1
        for i in range(self.nr_assumed):
            target = self.nodes[self.assumed[i]].hypothesis
            if target >= self.start:
                self.likely[target - self.start] = self.ref_of[self.assumed[i]]
            target = self.resolve(target)
            canonical = self.resolve(self.assumed[i])
            kind = info_kind(self.nodes[target].info)
            other = info_kind(self.nodes[canonical].info)
            if kind != BTF_KIND_FWD and other == BTF_KIND_FWD:
                self.nodes[canonical].map = target
                if self.touch(canonical) < 0:
                    return -1
            if self.adjusts_base:
                continue
            if kind == BTF_KIND_FWD and other != BTF_KIND_FWD:
                self.nodes[target].map = canonical
                if self.touch(target) < 0:
                    return -1
            # A struct of the unit that is now known to be a kept one.
            if (
                is_composite(kind) and other != BTF_KIND_FWD
                and self.nodes[canonical].map != NONE and self.nodes[target].map == NONE
            ):
                self.nodes[target].map = canonical
        return 0

    # What stays of the unit

    cdef uint32_t moved(self, uint32_t node) noexcept nogil:
        """Where a node that stays will be."""
        return self.forward[node - self.start] if self.start and node >= self.start else node

    cdef int mark(self, uint32_t node) noexcept nogil:
        """A node that stays refers to this one: keep it too if comparisons have to see it as it is.

        What a struct of the unit was merged with will do for it, but not if
        that is of the base: there, what the unit only declares is not to be
        given a meaning (see `compare`).
        """
        cdef const Node *t = &self.nodes[node]
        cdef unsigned int kind = info_kind(t.info)
        if node < self.start or self.forward[node - self.start]:
            return 0
        if is_enum_forward(t) or (self.nr_base and kind == BTF_KIND_FWD):
            self.forward[node - self.start] = 1
        elif is_reference(kind) or (self.nr_base and (is_composite(kind) or kind == BTF_KIND_TYPEDEF)):
            self.forward[node - self.start] = 1
            if reserve(<void **>&self.steps, &self.steps_cap, <uint64_t>self.nr_steps + 1, sizeof(Step)) < 0:
                return fail_memory(&self.fault)
            self.steps[self.nr_steps].node = node
            self.nr_steps += 1
        return 0

    cdef int mark_kept(self) noexcept nogil:
        """Number what stays: types that stand for themselves, and the references reached from them."""
        cdef uint32_t count = self.nr_nodes - self.start
        cdef uint32_t node, i, k, next
        cdef unsigned int kind
        cdef const Node *t
        memset(self.forward, 0, <size_t>count * sizeof(uint32_t))
        self.nr_steps = 0
        # Also forward declarations that found what they declare: later ones are compared with them.
        for i in range(self.start_primitives, self.nr_primitives):
            self.forward[self.primitives[i] - self.start] = 1
        for i in range(self.start_candidates, self.nr_candidates):
            node = self.candidates[i].node
            t = &self.nodes[node]
            kind = info_kind(t.info)
            self.forward[node - self.start] = 1
            if is_composite(kind):
                for k in range(info_vlen(t.info)):
                    if self.mark(self.rows[t.extra + k].type) < 0:
                        return -1
            elif kind == BTF_KIND_TYPEDEF:
                if self.mark(t.ref) < 0:
                    return -1
        while self.nr_steps:
            self.nr_steps -= 1
            t = &self.nodes[self.steps[self.nr_steps].node]
            kind = info_kind(t.info)
            if not is_composite(kind) and self.mark(t.ref) < 0:
                return -1
            if is_composite(kind) or kind == BTF_KIND_FUNC_PROTO:
                for i in range(info_vlen(t.info)):
                    if self.mark(self.rows[t.extra + i].type) < 0:
                        return -1
        next = self.start
        for i in range(count):
            if self.forward[i]:
                self.forward[i] = next
                next += 1
        return 0

    cdef int move_kept(self) noexcept nogil:
        """Move what stays of the last unit down, and drop the rest."""
        cdef uint32_t count = self.nr_nodes - self.start
        cdef uint32_t i, k, node, to, row, length, target
        cdef uint32_t kept = 0
        cdef unsigned int kind
        cdef Node *t
        if self.start == 0:
            return 0
        self.forget()
        for i in range(count):
            node = self.start + i
            if self.forward[i]:
                kept += 1
            t = &self.nodes[node]
            if self.forward[i]:
                self.stay[i] = self.forward[i]
            else:
                self.stay[i] = self.moved(self.resolve(node))
        for i in range(self.nr_touched):
            self.nodes[self.touched[i]].map = self.moved(self.resolve(self.touched[i]))
        self.nr_touched = 0
        for i in range(self.start_primitives, self.nr_primitives):
            self.primitives[i] = self.moved(self.primitives[i])
        for i in range(self.start_candidates, self.nr_candidates):
            self.candidates[i].node = self.moved(self.candidates[i].node)
            self.groups[self.candidates[i].group].node = self.candidates[i].node
        if self.index_type >= self.start:
            self.index_type = self.moved(self.resolve(self.index_type))
        # What a kept node stands for has to be known before any of them moves.
        for i in range(count):
            node = self.start + i
            if self.forward[i] and self.nodes[node].map != NONE:
                target = self.resolve(node)
                self.nodes[node].hypothesis = self.moved(target)
        row = self.start_row
        for i in range(count):
            to = self.forward[i]
            if to == 0:
                continue
            node = self.start + i
            t = &self.nodes[to]
            t[0] = self.nodes[node]
            t.map = t.hypothesis
            t.hypothesis = NONE
            self.positions[to] = self.positions[node]
            self.ref_of[to] = self.ref_of[node]
            kind = info_kind(t.info)
            if is_composite(kind) or is_enum(kind) or kind == BTF_KIND_FUNC_PROTO:
                # Rows lie in the order of their types, so they move down too.
                length = info_vlen(t.info)
                if length:
                    memmove(self.rows + row, self.rows + t.extra, <size_t>length * sizeof(Row))
                t.extra = row
                row += length
                for k in range(t.extra, row):
                    if self.rows[k].name & RAW_NAME:
                        self.rows[k].name = pool_at(self.strings, self.rows[k].name & ~<uint32_t>RAW_NAME)
                        if self.rows[k].name == FAILED:
                            return fail_memory(&self.fault)
                    self.rows[k].name &= ~<uint32_t>NEW_NAME
                    if not is_enum(kind) and self.rows[k].type >= self.start:
                        self.rows[k].type = self.stay[self.rows[k].type - self.start]
            if (is_reference(kind) or kind == BTF_KIND_TYPEDEF) and t.ref >= self.start:
                t.ref = self.stay[t.ref - self.start]
        self.nr_nodes = self.start + kept
        self.nr_rows = row
        self.start = 0
        return 0

    # Pass 3

    cdef uint32_t node_key(self, uint32_t node) noexcept nogil:
        """The key of a node of the unit, once pass 3 saw it."""
        if node == 0:
            return 0
        if self.ref_of[node]:
            return REF | (self.ref_of[node] - 1)
        return self.moved(self.resolve(node))

    cdef uint32_t key(self, uint32_t local) noexcept nogil:
        """The key of a type of the unit that was added last."""
        return self.node_key(self.start + local - 1) if local else 0

    cdef int visit_ref(self, uint32_t node) noexcept nogil:
        """Put a reference that was not merged yet on the stack."""
        if node < self.start or not is_reference(info_kind(self.nodes[node].info)):
            return 0
        if self.ref_of[node] == IN_PROGRESS:
            return fail(
                &self.fault, "types that refer to each other in a circle, without a struct between", -1, 0
            )
        if self.ref_of[node]:
            return 0
        if reserve(<void **>&self.steps, &self.steps_cap, <uint64_t>self.nr_steps + 1, sizeof(Step)) < 0:
            return fail_memory(&self.fault)
        self.ref_of[node] = IN_PROGRESS
        self.steps[self.nr_steps].node = node
        self.steps[self.nr_steps].next = 0
        self.nr_steps += 1
        return 0

    cdef int merge_refs(self) noexcept nogil:
        """Depth first from each id in turn, as libbpf does: children are merged before what refers to them."""
        cdef uint32_t node, i
        cdef const Node *t
        cdef Step *step
        self.nr_steps = 0
        for node in range(self.start, self.nr_nodes):
            if node + 2 * AHEAD < self.nr_nodes:
                i = self.likely[node + 2 * AHEAD - self.start]
                if i:
                    prefetch(&self.refs[i - 1])
            t = &self.nodes[node]
            if self.ref_of[node] or not is_reference(info_kind(t.info)):
                continue
            if info_kind(t.info) != BTF_KIND_FUNC_PROTO and (
                not is_reference(info_kind(self.nodes[t.ref].info)) or 0 < self.ref_of[t.ref] < IN_PROGRESS
            ):
                # The common case: what it refers to is merged already, or is none of this pass.
                if self.merge_ref(node) < 0:
                    return -1
                continue
            if self.visit_ref(node) < 0:
                return -1
            while self.nr_steps:
                step = &self.steps[self.nr_steps - 1]
                t = &self.nodes[step.node]
                i = step.next
                step.next += 1
                if i == 0:
                    if self.visit_ref(t.ref) < 0:
                        return -1
                elif info_kind(t.info) == BTF_KIND_FUNC_PROTO and i <= info_vlen(t.info):
                    if self.visit_ref(self.rows[t.extra + i - 1].type) < 0:
                        return -1
                else:
                    self.nr_steps -= 1
                    if self.merge_ref(step.node) < 0:
                        return -1
        return 0

    cdef int merge_ref(self, uint32_t node) noexcept nogil:
        cdef const Node *t = &self.nodes[node]
        cdef unsigned int kind = info_kind(t.info)
        cdef uint32_t count = info_vlen(t.info) if kind == BTF_KIND_FUNC_PROTO else 0
        cdef uint32_t i, ref
        for i in range(count):
            if self.add_ref_row(self.rows[t.extra + i].name, self.node_key(self.rows[t.extra + i].type)) < 0:
                return -1
        ref = self.add_ref(
            self.positions[node], t.name, t.info, self.node_key(t.ref),
            t.extra if kind == BTF_KIND_ARRAY else 0, count, self.likely[node - self.start],
        )
        if ref == NONE:
            return -1
        self.ref_of[node] = ref + 1
        return 0

    cdef int merge_tags(self, const Record *r) noexcept nogil:
        """The unit's declaration tags and variables, which follow its types."""
        cdef const Variable *v
        cdef Secinfo *secinfo
        cdef uint32_t i, k, ref
        for i in range(r.nr_type_tags):
            self.position += 1
            if self.strings.emit(r.type_tags[i].value) == FAILED:
                return fail_memory(&self.fault)
            if self.add_ref(
                self.position, r.type_tags[i].value, make_info(BTF_KIND_DECL_TAG, 0, False),
                self.key(r.type_tags[i].owner), <uint32_t>r.type_tags[i].component, 0, 0,
            ) == NONE:
                return -1
        if self.emit_function_strings(r) < 0:
            return -1
        k = 0
        for i in range(r.nr_variables):
            v = &r.variables[i]
            self.position += 1
            if self.strings.emit(v.name) == FAILED:
                return fail_memory(&self.fault)
            ref = self.add_ref(
                self.position, v.name, make_info(BTF_KIND_VAR, 0, False), self.key(v.type), v.linkage, 0, UNIQUE
            )
            if ref == NONE:
                return -1
            if reserve(
                <void **>&self.secinfos, &self.secinfos_cap, <uint64_t>self.nr_secinfos + 1, sizeof(Secinfo)
            ) < 0:
                return fail_memory(&self.fault)
            secinfo = &self.secinfos[self.nr_secinfos]
            secinfo.section = v.section
            secinfo.offset = <uint32_t>v.offset
            secinfo.size = v.size
            secinfo.variable = ref
            secinfo.order = self.nr_secinfos
            self.nr_secinfos += 1
            while k < r.nr_variable_tags and r.variable_tags[k].owner == i:
                self.position += 1
                if self.strings.emit(r.variable_tags[k].value) == FAILED:
                    return fail_memory(&self.fault)
                if self.add_ref(
                    self.position, r.variable_tags[k].value, make_info(BTF_KIND_DECL_TAG, 0, False), REF | ref,
                    <uint32_t>r.variable_tags[k].component, 0, 0,
                ) == NONE:
                    return -1
                k += 1
        return 0

    cdef int emit_function_strings(self, const Record *r) noexcept nogil:
        """pahole notes the names of parameters as it sees the functions, listed in the end or not."""
        cdef const SavedFunction *f
        cdef uint32_t i, k
        for i in range(r.nr_functions):
            f = &r.functions[i]
            for k in range(f.nr_parameters):
                if self.strings.emit(r.parameters[f.first_parameter + k].name) == FAILED:
                    return fail_memory(&self.fault)
            for k in range(f.nr_tags):
                if self.strings.emit(r.function_tags[f.first_tag + k].value) == FAILED:
                    return fail_memory(&self.fault)
        return 0

    cdef uint64_t hash_ref(self, const Ref *ref) noexcept nogil:
        cdef uint64_t key = self.strings.key
        cdef uint64_t h = mix(mix(ref.info, ref.name, key), ref.ref, key)
        cdef uint32_t i
        if info_kind(ref.info) == BTF_KIND_FUNC_PROTO:
            for i in range(info_vlen(ref.info)):
                h = mix(h, <uint64_t>self.ref_rows[ref.extra + i].name << 32 | self.ref_rows[ref.extra + i].type, key)
            return h
        return mix(h, ref.extra, key)

    cdef bint same_ref(self, const Ref *a, const Ref *b) noexcept nogil:
        cdef const Row *x
        cdef const Row *y
        cdef uint32_t i
        if a.name != b.name or a.info != b.info or a.ref != b.ref:
            return False
        if info_kind(a.info) != BTF_KIND_FUNC_PROTO:
            return a.extra == b.extra
        x = self.ref_rows + a.extra
        y = self.ref_rows + b.extra
        for i in range(info_vlen(a.info)):
            if x[i].name != y[i].name or x[i].type != y[i].type:
                return False
        return True

    cdef uint32_t find_ref(self, const Ref *ref, uint32_t *slot) noexcept nogil:
        """The number + 1 of an equal one, or 0 and the slot where it would go."""
        cdef const Ref *known
        cdef uint32_t at = <uint32_t>ref.hash & self.ref_mask
        while self.ref_slots[at]:
            known = &self.refs[self.ref_slots[at] - 1]
            if known.hash == ref.hash and self.same_ref(known, ref):
                return self.ref_slots[at]
            at = (at + 1) & self.ref_mask
        slot[0] = at
        return 0

    cdef int grow_ref_slots(self) noexcept nogil:
        cdef uint32_t mask = self.ref_mask * 2 + 1
        cdef uint32_t *grown = <uint32_t *>calloc(<size_t>mask + 1, sizeof(uint32_t))
        cdef uint32_t i, at
        if grown == NULL:
            return fail_memory(&self.fault)
        for i in range(self.ref_mask + 1):
            if self.ref_slots[i]:
                at = <uint32_t>self.refs[self.ref_slots[i] - 1].hash & mask
                while grown[at]:
                    at = (at + 1) & mask
                grown[at] = self.ref_slots[i]
        free(self.ref_slots)
        self.ref_slots = grown
        self.ref_mask = mask
        return 0

    cdef int add_ref_row(self, uint32_t name, uint32_t type) noexcept nogil:
        """Stage a parameter for the prototype that `add_ref` adds next."""
        if reserve(<void **>&self.ref_rows, &self.ref_rows_cap, <uint64_t>self.nr_ref_rows + 1, sizeof(Row)) < 0:
            return fail_memory(&self.fault)
        self.ref_rows[self.nr_ref_rows].name = name
        self.ref_rows[self.nr_ref_rows].type = type
        self.ref_rows[self.nr_ref_rows].value = 0
        self.nr_ref_rows += 1
        return 0

    cdef uint32_t add_ref(
        self, uint64_t position, uint32_t name, uint32_t info, uint32_t ref, uint32_t extra, uint32_t nr_rows,
        uint32_t likely
    ) noexcept nogil:
        """The number of the type in `refs`, added if no equal one is there; NONE with `fault`.

        `likely`: 1 + the number of one that is probably equal, which saves a
        search; or 0; or UNIQUE for variables, which are never merged.
        """
        cdef Ref *new
        cdef uint32_t slot, known
        if <uint64_t>self.nr_refs + 1 >= REF or reserve(
            <void **>&self.refs, &self.refs_cap, <uint64_t>self.nr_refs + 1, sizeof(Ref)
        ) < 0:
            fail_memory(&self.fault)
            return NONE
        new = &self.refs[self.nr_refs]
        new.position = position
        new.name = name
        new.info = info
        new.ref = ref
        new.extra = self.nr_ref_rows - nr_rows if info_kind(info) == BTF_KIND_FUNC_PROTO else extra
        # (what equals one of the base is known in the end, see `settle`)
        if self.nr_base_refs < likely <= self.nr_refs and self.same_ref(&self.refs[likely - 1], new):
            self.nr_ref_rows -= nr_rows
            return likely - 1
        new.hash = self.hash_ref(new)
        if likely != UNIQUE:
            known = self.find_ref(new, &slot)
            if known:
                self.nr_ref_rows -= nr_rows
                return known - 1
        self.nr_refs += 1
        if likely != UNIQUE:
            self.ref_slots[slot] = self.nr_refs
            if <uint64_t>self.nr_refs * 2 > self.ref_mask and self.grow_ref_slots() < 0:
                return NONE
        return self.nr_refs - 1

    # The end

    cdef int resolve_forwards(self) noexcept nogil:
        """A declaration that met no struct in pass 2 means the only one of its name, if there is only one."""
        cdef uint32_t mask = 1 << 12
        cdef uint32_t *slots
        cdef uint32_t node, at, found
        cdef unsigned int kind
        while mask < self.nr_nodes * 2:
            mask *= 2
        mask -= 1
        slots = <uint32_t *>calloc(<size_t>mask + 1, sizeof(uint32_t))
        if slots == NULL:
            return fail_memory(&self.fault)
        # A slot holds a struct; its hypothesis, unused by now, is set when the name is not unique.
        for node in range(1, self.nr_nodes):
            if not is_composite(info_kind(self.nodes[node].info)) or self.nodes[node].map != node:
                continue
            at = <uint32_t>mix(0, self.nodes[node].name, self.strings.key) & mask
            while slots[at] and self.nodes[slots[at]].name != self.nodes[node].name:
                at = (at + 1) & mask
            if slots[at]:
                self.nodes[slots[at]].hypothesis = 0
            else:
                slots[at] = node
        for node in range(self.nr_base + 1, self.nr_nodes):
            if info_kind(self.nodes[node].info) != BTF_KIND_FWD or self.nodes[node].map != node:
                continue
            at = <uint32_t>mix(0, self.nodes[node].name, self.strings.key) & mask
            while slots[at] and self.nodes[slots[at]].name != self.nodes[node].name:
                at = (at + 1) & mask
            found = slots[at]
            if found and self.nodes[found].hypothesis == NONE:
                kind = info_kind(self.nodes[found].info)
                if kind == forward_kind(&self.nodes[node]):
                    self.nodes[node].map = found
        for node in range(1, self.nr_nodes):
            self.nodes[node].hypothesis = NONE
        free(slots)
        return 0

    cdef uint32_t settled_key(self, uint32_t key) noexcept nogil:
        """The key of what stands for this one in the end; only after, or within, `settle`."""
        if key & REF:
            # What was added since `settle` stands for itself.
            if key & ~<uint32_t>REF < self.nr_settled:
                return REF | self.representative[key & ~<uint32_t>REF]
            return key
        return self.resolve(key)

    cdef int settle(self) noexcept nogil:
        """All units are in: find out what forward declarations mean, and merge references once more."""
        cdef uint32_t i, k, slot, known
        cdef Ref *ref
        if self.move_kept() < 0 or self.resolve_forwards() < 0:
            return -1
        free(self.representative)
        self.representative = <uint32_t *>calloc(<size_t>self.nr_refs + 1, sizeof(uint32_t))
        if self.representative == NULL:
            return fail_memory(&self.fault)
        memset(self.ref_slots, 0, (<size_t>self.ref_mask + 1) * sizeof(uint32_t))
        self.nr_settled = self.nr_refs
        for i in range(self.nr_refs):
            ref = &self.refs[i]
            self.representative[i] = i
            if i < self.nr_base_refs:
                # As it is, whatever its declarations have come to mean for us.
                if info_kind(ref.info) != BTF_KIND_VAR and self.find_ref(ref, &slot) == 0:
                    self.ref_slots[slot] = i + 1
                    if <uint64_t>i * 2 > self.ref_mask and self.grow_ref_slots() < 0:
                        return -1
                continue
            ref.ref = self.settled_key(ref.ref)
            if info_kind(ref.info) == BTF_KIND_FUNC_PROTO:
                for k in range(info_vlen(ref.info)):
                    self.ref_rows[ref.extra + k].type = self.settled_key(self.ref_rows[ref.extra + k].type)
            if info_kind(ref.info) == BTF_KIND_VAR:
                continue
            ref.hash = self.hash_ref(ref)
            known = self.find_ref(ref, &slot)
            if known:
                self.representative[i] = known - 1
            else:
                self.ref_slots[slot] = i + 1
                if <uint64_t>i * 2 > self.ref_mask and self.grow_ref_slots() < 0:
                    return -1
        return 0
