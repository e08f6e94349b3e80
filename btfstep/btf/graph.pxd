# SPDX-License-Identifier: GPL-2.0-only
"""The type graph of a run: units go in one by one, deduplicated BTF comes out.

The result is that of libbpf's btf__dedup over all units at once, id for id.
Each of its passes runs in id order, and types refer only within their unit,
so each pass can be run on one unit at a time:

1. integers, floats, enumerations and forward declarations: the first of
   equals is kept;
2. structs, unions and typedefs: one is the same as an earlier one if their
   graphs match, side by side, with a forward declaration matching its struct;
3. references (pointers, qualifiers, arrays, prototypes, tags): the first of
   equals is kept, children before parents.

`nodes` holds what passes 1 and 2 kept, and the references that pass 2 has to
walk from there; with a base, the unit's own of what was merged with the base,
too, because declarations in it may be given a meaning, and those of the base
not.  The unit at hand is appended behind them; when it is done
what was found to be new moves down, and the rest is dropped.  `refs` holds
what pass 3 kept.  A *key* names either: a node's number, or REF | a number in
`refs`.

Two things are known only at the end: which struct a forward declaration means,
and with it which references are equal after all.  `finish` runs pass 3 once
more over `refs`, in the order in which they were first seen.

Single-threaded, without the GIL.  A type costs about 130 ns; memory is that of
the result, about 60 bytes for a type and 12 for a member.
"""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from btfstep.btf.reader cimport BtfReader
from btfstep.btf.strings cimport StringPool
from btfstep.btf.types cimport Row
from btfstep.dwarf.sections cimport Fault
from btfstep.encode.record cimport Record

cdef enum:
    REF = 1 << 31  # in a key: of `refs`
    NONE = 0xFFFFFFFF
    UNIQUE = 0xFFFFFFFF  # for `add_ref`


cdef struct Ref:
    # A type that pass 3 kept.  Fields as in Type; what it refers to, as keys.
    uint64_t position
    uint64_t hash
    uint32_t name
    uint32_t info
    uint32_t ref
    uint32_t extra  # array: elements; prototype: first row; variable: linkage; declaration tag: component


cdef struct Candidate:
    uint32_t node
    uint32_t when  # entries of libbpf's table before it; unless `known`, structs and typedefs only
    bint known
    uint32_t before  # index + 1 in `candidates` of the one tried before it, as the group lies
    uint32_t behind
    uint32_t younger  # index + 1 of the group's next one by age
    uint32_t group


cdef struct Group:
    # Candidates that look the same by themselves, in the order in which libbpf tries them.
    uint64_t hash
    uint32_t node  # of one of them
    uint32_t front  # index + 1
    uint32_t back
    uint32_t oldest
    uint32_t youngest
    uint32_t count
    uint32_t epoch  # growths of libbpf's table that are accounted for
    bint reversed  # tried from the back
    bint has_forward  # enumerations: one of them is a forward declaration


cdef struct Choice:
    # A lookup at which more than one candidate fitted.
    uint32_t group
    uint32_t count  # candidates of the group then
    uint32_t when


cdef struct Pair:
    uint32_t candidate
    uint32_t canonical
    uint32_t next  # child
    bint followed  # a declaration was followed on the way here


cdef struct Unequal:
    uint64_t pair  # candidate << 32 | canonical; 0: an empty slot
    uint32_t until  # the number of merges at which it may no longer be so; see `mark_unequal`


cdef struct Step:
    uint32_t node
    uint32_t next


cdef struct Secinfo:
    uint32_t section
    uint32_t offset
    uint32_t size
    uint32_t variable  # in `refs`
    uint32_t order


cdef struct Node:
    # A Type with what pass 1 and 2 know of it: one cache line has it all.
    uint64_t hash
    uint32_t name
    uint32_t info
    uint32_t ref
    uint32_t extra
    uint32_t map  # the node that stands for it; NONE: not known yet
    uint32_t hypothesis  # what it would be in the comparison at hand; NONE


@cython.final
cdef class TypeGraph:
    cdef readonly StringPool strings
    cdef uint32_t nr_base  # types of the base, which are the nodes 1 ... nr_base
    cdef uint32_t nr_base_entries  # of libbpf's table: all its types but variables
    cdef uint32_t nr_base_primitives
    cdef uint32_t nr_base_refs  # the first so many of `refs` are the base's
    cdef Fault fault
    cdef Node *nodes
    cdef Row *rows
    cdef uint64_t *positions  # of each node, among all types of all units
    cdef uint32_t *ref_of  # reference node -> 1 + number in `refs`
    cdef uint32_t *forward  # unit's node -> number after the move
    cdef uint32_t nr_nodes, nodes_cap, positions_cap, ref_of_cap, forward_cap
    cdef uint32_t nr_rows, rows_cap
    cdef uint32_t start  # first node of the unit at hand
    cdef uint32_t start_row
    cdef uint32_t start_candidates
    cdef uint32_t *stay  # unit's node -> what a node that stays refers to instead
    cdef uint32_t stay_cap
    cdef uint32_t *likely  # unit's node -> 1 + number of the one of `refs` that it probably is; 0
    cdef uint32_t likely_cap
    cdef uint32_t *assumed  # nodes with a hypothesis
    cdef uint32_t nr_assumed, assumed_cap
    cdef uint32_t *touched  # older nodes that were mapped to nodes of the unit
    cdef uint32_t nr_touched, touched_cap
    cdef Pair *pairs
    cdef uint32_t nr_pairs, pairs_cap
    cdef Step *steps
    cdef uint32_t nr_steps, steps_cap
    cdef Unequal *unequal  # pairs of the unit at hand that comparisons found unequal, in a hash table
    cdef uint32_t nr_unequal, unequal_mask
    cdef uint32_t merges  # comparisons that were accepted
    cdef int failure  # of the last pair
    cdef uint64_t work  # left before a comparison gives up
    cdef bint adjusts_base  # the comparison at hand would give a meaning to a declaration of the base
    cdef uint64_t budget  # steps of comparisons that are left, over all units; see `spend`
    # pass 1: what it kept, and content -> index + 1 in it
    cdef uint32_t *primitives
    cdef uint32_t nr_primitives
    cdef uint32_t primitives_cap
    cdef uint32_t start_primitives  # those before are older than the unit at hand
    cdef uint32_t *primitive_slots
    cdef uint32_t primitive_mask
    # groups of enumerations (by name) and of structs and typedefs (by content)
    cdef Group *groups
    cdef uint32_t nr_groups, groups_cap
    cdef uint32_t *group_slots  # index + 1
    cdef uint32_t group_mask
    cdef Candidate *candidates
    cdef uint32_t nr_candidates, candidates_cap
    cdef uint32_t nr_structs  # structs and typedefs kept
    cdef uint32_t assumed_primitives
    cdef Choice *choices
    cdef uint32_t nr_choices, choices_cap
    # pass 3
    cdef Ref *refs
    cdef uint32_t nr_refs, refs_cap
    cdef Row *ref_rows
    cdef uint32_t nr_ref_rows, ref_rows_cap
    cdef uint32_t *ref_slots  # number + 1
    cdef uint32_t ref_mask
    cdef uint32_t *representative  # refs -> refs, after `settle`
    cdef Secinfo *secinfos
    cdef uint32_t nr_secinfos, secinfos_cap
    cdef uint64_t position  # types so far, of all units
    cdef uint32_t index_type  # the node that arrays are indexed by; 0: none yet
    cdef uint32_t name_int
    cdef uint32_t nr_settled  # refs that `representative` knows

    cdef int add_unit(self, const Record *record) noexcept nogil
    cdef uint32_t key(self, uint32_t local) noexcept nogil
    cdef uint32_t resolve(self, uint32_t node) noexcept nogil
    cdef int settle(self) noexcept nogil
    cdef uint32_t settled_key(self, uint32_t key) noexcept nogil
    cdef uint32_t add_ref(
        self, uint64_t position, uint32_t name, uint32_t info, uint32_t ref, uint32_t extra, uint32_t nr_rows,
        uint32_t likely
    ) noexcept nogil
    cdef int add_ref_row(self, uint32_t name, uint32_t type) noexcept nogil

    # internal
    cdef int reserve_nodes(self, uint64_t count) noexcept nogil
    cdef int append_unit(self, const Record *record) noexcept nogil
    cdef void append_node(self, uint64_t position) noexcept nogil
    cdef int merge_primitives(self) noexcept nogil
    cdef bint same_primitive(self, const Node *a, const Node *b) noexcept nogil
    cdef uint32_t find_primitive(self, uint32_t node, uint32_t *slot) noexcept nogil
    cdef int keep_primitive(self, uint32_t node) noexcept nogil
    cdef int merge_enumeration(self, uint32_t node) noexcept nogil
    cdef Group *find_group(self, uint32_t node, uint64_t hash, bint by_name) noexcept nogil
    cdef void turn(self, Group *group, uint32_t size) noexcept nogil
    cdef int add_candidate(self, Group *group, uint32_t node, uint32_t when, bint known) noexcept nogil
    cdef uint32_t table_size(self) noexcept nogil
    cdef TypeGraph copy(self, StringPool strings, uint32_t assumed_primitives)
    cdef int load_base(self, BtfReader base) except -1
    cdef int load_base_nodes(self, BtfReader base, const uint32_t *names) except -1
    cdef uint32_t base_name(self, BtfReader base, const uint32_t *names, uint32_t offset) except? 0
    cdef int load_base_refs(self, BtfReader base, const uint32_t *names) except -1
    cdef uint32_t first_candidate(self, const Group *group) noexcept nogil
    cdef uint32_t next_candidate(self, const Group *group, uint32_t at) noexcept nogil
    cdef int note_choice(self, const Group *group) noexcept nogil
    cdef bint choice_holds(self, const Choice *choice) noexcept nogil
    cdef bint alike(self, const Node *a, const Node *b) noexcept nogil
    cdef int merge_structs(self) noexcept nogil
    cdef void fetch_group(self, uint32_t node) noexcept nogil
    cdef int merge_struct(self, uint32_t node) noexcept nogil
    cdef void forget(self) noexcept nogil
    cdef int equivalent(self, uint32_t candidate, uint32_t canonical) noexcept nogil
    cdef int compare(self, uint32_t candidate, uint32_t canonical) noexcept nogil
    cdef uint32_t find_unequal(self, uint64_t pair) noexcept nogil
    cdef int mark_unequal(self) noexcept nogil
    cdef int grow_unequal(self) noexcept nogil
    cdef bint identical(self, uint32_t a_id, uint32_t b_id, int depth) noexcept nogil
    cdef int spend(self, uint64_t steps) noexcept nogil
    cdef int accept(self) noexcept nogil
    cdef int touch(self, uint32_t node) noexcept nogil
    cdef int mark_kept(self) noexcept nogil
    cdef int mark(self, uint32_t node) noexcept nogil
    cdef uint32_t moved(self, uint32_t node) noexcept nogil
    cdef uint32_t node_key(self, uint32_t node) noexcept nogil
    cdef int merge_refs(self) noexcept nogil
    cdef int visit_ref(self, uint32_t node) noexcept nogil
    cdef int merge_ref(self, uint32_t node) noexcept nogil
    cdef int merge_tags(self, const Record *record) noexcept nogil
    cdef int emit_function_strings(self, const Record *record) noexcept nogil
    cdef int move_kept(self) noexcept nogil
    cdef uint64_t hash_ref(self, const Ref *ref) noexcept nogil
    cdef bint same_ref(self, const Ref *a, const Ref *b) noexcept nogil
    cdef uint32_t find_ref(self, const Ref *ref, uint32_t *slot) noexcept nogil
    cdef int grow_ref_slots(self) noexcept nogil
    cdef int resolve_forwards(self) noexcept nogil
