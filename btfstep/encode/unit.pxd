# SPDX-License-Identifier: GPL-2.0-only
"""Turns the DIEs of one compilation unit into a UnitRecord.

One encoder a worker: its arrays are reset and used again from unit to unit.
`encode_unit` runs without the GIL.  A DIE costs about 50 ns, all told: a kernel's 18 million take a second.
"""

cimport cython
from libc.stdint cimport int8_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from btfstep.btf.types cimport Row, Type
from btfstep.dwarf.abbrev cimport Abbrev, AbbrevTable, Die
from btfstep.dwarf.cursor cimport Cursor
from btfstep.dwarf.location cimport Location
from btfstep.dwarf.sections cimport Fault
from btfstep.dwarf.unit cimport Unit
from btfstep.encode.context cimport EncodeContext
from btfstep.encode.record cimport Record, Tag


cdef enum:
    # What `UnitEncoder.find` finds
    FOUND_TYPE = 0
    FOUND_FUNCTION = 1
    FOUND_PARAMETER = 2
    FOUND_OBJECT = 3

    # Type.hash while the unit is walked: what Type.ref holds
    REF_REL = 0
    REF_LOCAL = 1

    # Extra.packed
    PACKED_UNKNOWN = 0
    PACKED_NO = 1
    PACKED_YES = 2

    NO_MARK = 0xFFFFFFFF
    MARK_SHIFT = 3

    CACHED_NAME_BITS = 16
    CACHED_NAMES = 1 << CACHED_NAME_BITS

    # Who a Tag belongs to, in the two high bits of `owner`
    OWNER_TYPE = 0
    OWNER_FRAME = 1  # a type that is not numbered yet, by depth
    OWNER_FUNCTION = 2
    OWNER_OBJECT = 3
    OWNER_SHIFT = 30
    OWNER_MASK = (1 << 30) - 1


cdef struct Frame:
    # A DIE whose children are being read.
    uint8_t kind
    bint top_level
    uint32_t tag
    uint32_t rel  # of the DIE, see `UnitEncoder.rel`
    uint32_t mark  # index of its mark, if it has one
    uint32_t name
    uint32_t size
    uint32_t type  # rel of its DW_AT_type
    uint32_t index  # function; or owner of annotations
    int component  # annotations
    uint32_t first_row  # in the scratch rows
    uint32_t first_deferred
    uint32_t first_tag
    uint32_t nr_children
    bint flag  # declaration; varargs
    bint flag_bits  # has bit fields


cdef struct Extra:
    # What the DWARF says of a type that BTF does not, for calling conventions.
    uint64_t raw  # hash of a struct or enumeration with the names as they came; 0: none
    uint32_t byte_size  # DW_AT_byte_size, 0 if absent
    uint16_t tag
    uint16_t alignment  # see layout.pyx; 0: not asked yet
    uint8_t packed


cdef struct Mark:
    # A DIE that others may refer to.
    uint32_t rel
    uint32_t value  # what `find` finds, in the two high bits, and 1 + its index; 0: not finished yet


cdef struct CachedName:
    # A string of .debug_str that the worker saw lately.
    uint32_t offset  # + 1; 0: free
    uint32_t name  # with NEW_NAME while it is not known to be in the output


cdef struct Known:
    # A struct or enumeration whose names the worker has looked up before.
    uint64_t raw  # 0: free
    uint64_t hash  # as in Type


cdef struct DeferredBits:
    # A bit field whose offset counts from the other end of a type not yet seen.
    uint32_t row
    uint32_t byte_offset
    uint32_t byte_size  # of its type, 0: look there
    int8_t bit_offset
    uint8_t bits
    bint placed  # `row` is an index of the record


cdef struct Function:
    uint64_t address
    uint32_t rel
    uint32_t name
    uint32_t type  # rel; later the local id
    uint32_t origin  # rel
    uint32_t specification  # rel
    uint32_t first_parameter  # index + 1
    uint32_t last_parameter  # index + 1
    uint32_t nr_parameters
    uint32_t returns  # local id
    bint declaration
    bint external
    bint has_origin
    bint inlined
    bint nocall
    bint varargs
    bint clang
    bint reordered
    bint signature_changed
    bint optimized_parameters
    bint unexpected_register


cdef struct FormalParameter:
    Location location
    uint64_t first_pieces
    uint64_t second_pieces
    uint32_t rel
    uint32_t name  # for `number_of`
    uint32_t type  # rel
    uint32_t origin  # rel
    uint32_t next  # index + 1 of the function's next one
    uint32_t id  # local type id
    uint32_t unit
    uint32_t member_name  # true signature: the one member that arrives
    uint32_t member_type  # its local type id
    int register
    uint16_t byte_size
    uint8_t index
    bint has_origin
    bint has_location
    bint has_constant
    bint place_constant
    bint place_stack
    bint in_memory
    bint optimized
    bint unexpected


cdef struct DataObject:
    # A DW_TAG_variable.
    Location location
    uint64_t address
    uint32_t rel
    uint32_t name  # for `number_of`
    uint32_t type  # rel
    uint32_t specification  # rel
    uint32_t unit
    bint external
    bint declaration
    bint artificial
    bint top_level
    bint has_specification
    bint fixed  # has one address


@cython.final
cdef class UnitEncoder:
    cdef readonly EncodeContext context
    cdef AbbrevTable abbrevs
    cdef Fault fault
    # The units of the record: one, or all when they refer to each other.
    cdef Unit unit  # the one being walked
    cdef uint32_t unit_index
    cdef uint64_t base  # `rel` 0
    cdef uint64_t shift  # from an offset in the walked unit's section to its `rel`, modulo 2^64
    cdef uint64_t types_shift  # where .debug_info starts when .debug_types comes first
    cdef uint64_t limit  # first `rel` past the end
    cdef Record *record  # the caller's
    cdef Frame *frames
    cdef uint32_t nr_frames, frames_cap
    cdef Row *scratch
    cdef uint32_t nr_scratch, scratch_cap
    cdef Extra *extras  # by local type id
    cdef uint32_t extras_cap
    cdef DeferredBits *deferred
    cdef uint32_t nr_deferred, deferred_cap
    cdef Function *functions
    cdef uint32_t nr_functions, functions_cap
    cdef FormalParameter *parameters
    cdef uint32_t nr_parameters, parameters_cap
    cdef DataObject *objects
    cdef uint32_t nr_objects, objects_cap
    cdef Tag *tags  # of types and functions, as they come
    cdef uint32_t nr_tags, tags_cap  # by owner, once the walk is done
    # Of all units so far: their bytes, links of chains of annotations, steps over what DIEs share.
    cdef uint64_t bytes, links, work
    # The walk meets DIEs in the order of their offsets, so marks are sorted as they
    # come, and a table of where each 8 bytes' first one is finds any in a step or two.
    cdef Mark *marks
    cdef uint32_t nr_marks, marks_cap
    cdef uint32_t *first_mark  # by rel >> MARK_SHIFT: 1 + the first mark there, 0: none
    cdef uint32_t first_marks_cap
    # Names come back within and between units: most are found in 512 KiB,
    # which stay in the processor's cache, unlike the pool's table.
    cdef CachedName *cached
    # Nearly all structs of a unit were in an earlier one: the names of their
    # members need no look then, nor do they when the merge drops the struct.
    cdef uint32_t raw_limit  # offsets in .debug_str from here on are looked up at once
    cdef Known *known  # by `raw`, open addressing
    cdef uint32_t nr_known, known_mask
    cdef uint32_t *stamps  # by string: 1 + serial of the record that listed it
    cdef uint32_t stamps_cap
    cdef uint32_t serial
    cdef uint32_t name_int  # the string "int"
    cdef uint32_t name_fake_int  # what stands for integers that BTF does not have
    cdef uint32_t *order  # functions in the order in which pahole numbers them
    cdef uint32_t nr_order, order_cap
    cdef bint clang
    cdef bint rust
    cdef bint all_parameters  # those of functions that cannot be listed, too
    cdef bint left_out  # some were not taken

    cdef int encode_unit(self, uint32_t index, Record *record) noexcept nogil
    cdef int encode_merged(self, Record *record) noexcept nogil
    cdef int encode_units(self, uint32_t first, uint32_t end, uint64_t size, Record *record) noexcept nogil
    cdef bint lacks_origin(self) noexcept nogil
    cdef int begin(self, Record *record, uint64_t size) noexcept nogil
    cdef int finish(self) noexcept nogil
    cdef int walk(self, uint32_t index) noexcept nogil
    cdef int walk_children(self, Cursor *c) noexcept nogil
    cdef int fail_at(self, const char *what, uint64_t offset) noexcept nogil
    cdef uint32_t rel(self, uint64_t offset) noexcept nogil
    cdef uint32_t reference(self, const Die *die, unsigned int slot) noexcept nogil
    cdef int name_of(self, const Die *die, unsigned int slot, uint32_t missing, uint32_t *name) noexcept nogil
    cdef uint32_t name_at(self, uint32_t offset) noexcept nogil
    cdef uint32_t uncached_name_at(self, uint32_t offset) noexcept nogil
    cdef uint32_t marked_new(self, uint32_t name) noexcept nogil
    cdef int new_name_of(self, const Die *die, uint32_t *name) noexcept nogil
    cdef uint32_t find(self, uint32_t rel, unsigned int kind) noexcept nogil
    cdef uint32_t mark(self, uint32_t rel) noexcept nogil
    cdef int set_mark(self, uint32_t mark, unsigned int kind, uint32_t index) noexcept nogil
    cdef uint32_t resolve(self, uint32_t rel) noexcept nogil
    cdef Frame *push(self, unsigned int kind, uint32_t tag, uint64_t offset) noexcept nogil
    cdef int skip_children(self, Cursor *c, const Die *die) noexcept nogil
    cdef int skip_nested(self, Cursor *c) noexcept nogil
    cdef uint32_t add_type(
        self, uint32_t mark, uint32_t tag, uint32_t byte_size,
        uint32_t name, uint32_t info, uint32_t ref, uint32_t extra, uint64_t state
    ) noexcept nogil
    cdef int64_t move_rows(self, uint32_t first) noexcept nogil
    cdef int add_tag(self, uint32_t value, uint32_t owner, int component) noexcept nogil
    cdef int note_annotation(self, const Die *die, uint32_t owner, int component) noexcept nogil
    cdef int note_gnu_chain(self, uint32_t annotation, uint32_t owner, int component) noexcept nogil
    cdef int is_annotation(self, const Die *die, const char *kind) noexcept nogil
    cdef int read_rel(self, uint32_t rel, Die *die) noexcept nogil
    cdef int note_pointer_tag(self, Frame *frame, const Die *die) noexcept nogil
    cdef bint excluded(self, const uint8_t *text) noexcept nogil
    cdef int close_function(self, const Frame *frame) noexcept nogil
    cdef int visit(self, Cursor *c, const Die *die) noexcept nogil
    cdef int walk_members(self, Cursor *c) noexcept nogil
    cdef int visit_plain(self, Cursor *c, const Abbrev *abbrev, uint64_t offset) noexcept nogil
    cdef int visit_common(self, Cursor *c, const Die *die, bint top_level) noexcept nogil
    cdef int visit_base_type(self, const Die *die) noexcept nogil
    cdef int visit_pointer(self, Cursor *c, const Die *die) noexcept nogil
    cdef int visit_member(self, Cursor *c, Frame *frame, const Die *die) noexcept nogil
    cdef int visit_enumerator(self, const Die *die) noexcept nogil
    cdef int visit_subrange(self, const Die *die) noexcept nogil
    cdef int visit_function(self, Cursor *c, const Die *die) noexcept nogil
    cdef int visit_parameter(self, Cursor *c, Frame *frame, const Die *die) noexcept nogil
    cdef int annotate(self, const Die *die, uint32_t owner, int component) noexcept nogil
    cdef int visit_variable(self, Cursor *c, const Die *die, bint top_level) noexcept nogil
    cdef int close(self) noexcept nogil
    cdef int close_class(self, const Frame *frame) noexcept nogil
    cdef int close_enumeration(self, const Frame *frame) noexcept nogil
    cdef int close_array(self, const Frame *frame) noexcept nogil
    cdef int close_pointer(self, const Frame *frame) noexcept nogil
    cdef uint64_t raw_hash(self, const Type *t) noexcept nogil
    cdef Known *find_known(self, uint64_t raw) noexcept nogil
    cdef int learn(self, uint64_t raw, uint64_t hash) noexcept nogil
    cdef int finish_types(self) noexcept nogil
    cdef int place_bits(self) noexcept nogil
    cdef uint32_t used_name(self, uint32_t name) noexcept nogil
    cdef uint32_t refers_to(self, const Type *t) noexcept nogil
    cdef int raw_name_of(self, const Die *die, uint32_t missing, uint32_t *name) noexcept nogil
    cdef uint32_t number_of(self, uint32_t name) noexcept nogil
    cdef int use_name(self, uint32_t name) noexcept nogil
    cdef int finish_type_tags(self) noexcept nogil
    cdef uint32_t first_tag(self, uint32_t owner) noexcept nogil
    cdef int follow(self, uint32_t annotation, uint32_t steps) noexcept nogil
    cdef int charge(self, uint64_t steps) noexcept nogil
    cdef int sort_rust_members(self, uint32_t first, uint32_t count) noexcept nogil
    cdef uint64_t storage_size(self, uint32_t id) noexcept nogil
