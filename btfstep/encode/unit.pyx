# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only: each is indexed below the count that its `reserve` covered)
"""The walk over a unit's DIEs; see `unit.pxd`.

pahole numbers a unit's types in the order in which it finishes them, so a
type inside a struct or a function comes before what contains it.  The walk
keeps a stack of open DIEs and gives out numbers as they close.  References
are kept as `rel`, the offset of the DIE from where the unit starts, and
resolved when all types have their numbers.
"""

from libc.stdint cimport int8_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memchr, memcpy, memset, strcmp, strlen, strncmp, strstr

from btfstep.btf.constants cimport *
from btfstep.btf.memory cimport load_acquire, mix, prefetch, reserve
from btfstep.btf.strings cimport FAILED, NO_NAME, pool_at, pool_offset, pool_text
from btfstep.btf.types cimport NEW_NAME, RAW_NAME, Row, Type, hash_enumerator, hash_member, hash_type
from btfstep.dwarf.abbrev cimport (
    SLOT_ANNOTATION, SLOT_ARTIFICIAL, SLOT_BIT_OFFSET, SLOT_BIT_SIZE, SLOT_BYTE_SIZE, SLOT_CALLING,
    SLOT_CONST_VALUE, SLOT_COUNT, SLOT_DATA_BIT_OFFSET, SLOT_DECLARATION, SLOT_DWO_NAME, SLOT_ENCODING,
    SLOT_EXTERNAL, SLOT_INLINE, SLOT_LOCATION, SLOT_LOW_PC, SLOT_MEMBER_LOCATION, SLOT_NAME, SLOT_ORIGIN,
    SLOT_PRODUCER, SLOT_SIBLING, SLOT_SPECIFICATION, SLOT_TYPE, SLOT_UPPER_BOUND, NOWHERE, SHAPE_ENUMERATOR,
    SHAPE_FRAME, SHAPE_MEMBER, SHAPE_NONE, SHAPE_PARAMETER, SHAPE_REFERENCE, Abbrev, Die, Plain, abbrev_find,
    abbrev_free, has, read_attributes, read_die,
)
from btfstep.dwarf.constants cimport *
from btfstep.dwarf.cursor cimport (
    Cursor, cursor_left, cursor_set, cursor_tell, load_u16, load_u32, load_u64, read_uleb,
)
from btfstep.dwarf.location cimport Location, block_constant
from btfstep.dwarf.sections cimport SEC_INFO, SEC_TYPES, Sections, fail, fail_memory
from btfstep.dwarf.unit cimport Unit, die_address, die_number, die_text, unit_start
from btfstep.encode.context cimport EncodeContext
from btfstep.encode.record cimport Record, Tag, record_clear

cdef enum:  # FrameKind
    # those that others may refer to
    IN_CLASS
    IN_ENUMERATION
    IN_ARRAY
    IN_SUBROUTINE
    IN_FUNCTION
    IN_POINTER
    LAST_MARKED = IN_POINTER
    IN_UNIT
    IN_NAMESPACE
    IN_BLOCK
    IN_ANNOTATED  # only annotations are of interest

cdef enum:
    # Compilers nest a few dozen deep.
    MAX_DEPTH = 4096
    MAX_DIMENSIONS = 64
    RUN = 64
    # Longer chains of annotations are cycles.
    MAX_CHAIN = 1000
    # A chain may be shared; real ones have a link or two.  More links than
    # this, and one for each byte of the units, are an attack on memory.
    FREE_LINKS = 1 << 12
    # So for `charge`: steps, and steps for each byte.
    FREE_WORK = 1 << 26
    MAX_WORK = 64


cdef int by_owner(const void *a, const void *b) noexcept nogil:
    """Of one owner, as they came."""
    cdef const Tag *x = <const Tag *>a
    cdef const Tag *y = <const Tag *>b
    if x.owner != y.owner:
        return -1 if x.owner < y.owner else 1
    return (x.order > y.order) - (x.order < y.order)


cdef inline unsigned int frame_kind(uint32_t tag) noexcept nogil:
    """What a DIE of SHAPE_FRAME opens."""
    if tag == DW_TAG_subroutine_type:
        return IN_SUBROUTINE
    if tag == DW_TAG_array_type:
        return IN_ARRAY
    return IN_ENUMERATION if tag == DW_TAG_enumeration_type else IN_CLASS


cdef inline uint64_t plain_number(const Plain *plain, const uint8_t *p, bint big) noexcept nogil:
    """The number of a plain DIE whose attributes, at `p`, are known to be there."""
    if plain.number_size == 0:
        return plain.constant
    p += plain.number
    if plain.number_size == 1:
        return p[0]
    if plain.number_size == 2:
        return load_u16(p, big)
    return load_u32(p, big) if plain.number_size == 4 else load_u64(p, big)


cdef inline uint32_t find_mark(
    const uint32_t *first_mark, const Mark *marks, uint32_t rel, unsigned int kind
) noexcept nogil:
    # `rel` is below the encoder's `limit` (see `rel` there), which the table covers.
    cdef uint32_t at = first_mark[rel >> MARK_SHIFT]
    cdef const Mark *mark
    if at == 0:
        return 0
    mark = &marks[at - 1]
    # The last mark of all has a `rel` that nothing reaches.
    while mark.rel < rel:
        mark += 1
    if mark.rel != rel or mark.value >> OWNER_SHIFT != kind:
        return 0
    return mark.value & OWNER_MASK


cdef inline uint32_t cache_slot(uint32_t offset) noexcept nogil:
    return (offset * <uint32_t>0x9E3779B1) >> (32 - CACHED_NAME_BITS)


cdef inline unsigned int reference_kind(uint32_t tag) noexcept nogil:
    """The kind of a type that refers to one other."""
    if tag == DW_TAG_pointer_type:
        return BTF_KIND_PTR
    if tag == DW_TAG_const_type:
        return BTF_KIND_CONST
    if tag == DW_TAG_volatile_type:
        return BTF_KIND_VOLATILE
    return BTF_KIND_RESTRICT if tag == DW_TAG_restrict_type else BTF_KIND_TYPEDEF


cdef class UnitEncoder:
    """Encodes units for one worker.

    `context` is shared with the other workers.
    """

    def __cinit__(self, EncodeContext context not None):
        self.context = context
        self.cached = <CachedName *>malloc(CACHED_NAMES * sizeof(CachedName))
        if self.cached == NULL:
            raise MemoryError
        memset(self.cached, 0xFF, CACHED_NAMES * sizeof(CachedName))  # NEW_NAME is set: nothing is found
        self.known_mask = (1 << 12) - 1
        self.known = <Known *>calloc(<size_t>self.known_mask + 1, sizeof(Known))
        if self.known == NULL:
            raise MemoryError
        self.raw_limit = <uint32_t>min(context.strings.whole_strings, <uint64_t>RAW_NAME)
        self.name_int = context.strings.intern_bytes(b"int")
        self.name_fake_int = context.strings.intern_bytes(b"__SANITIZED_FAKE_INT__")
        if context.merge_units:
            self.types_shift = context.sections.c.view[SEC_TYPES].size

    def __dealloc__(self):
        abbrev_free(&self.abbrevs)
        free(self.frames)
        free(self.scratch)
        free(self.extras)
        free(self.deferred)
        free(self.functions)
        free(self.parameters)
        free(self.objects)
        free(self.tags)
        free(self.marks)
        free(self.first_mark)
        free(self.stamps)
        free(self.cached)
        free(self.known)
        free(self.order)

    cdef int encode_unit(self, uint32_t index, Record *record) noexcept nogil:
        """Encode the unit `index` of the list by itself; -1 with `fault`."""
        cdef const Unit *unit = &self.context.units.units[index]
        self.base = unit.offset
        if unit.end - unit.offset > OWNER_MASK * <uint64_t>4:
            return fail(&self.fault, "unit is larger than 4 GiB", unit.section, unit.offset)
        return self.encode_units(index, index + 1, unit.end - unit.offset, record)

    cdef int encode_merged(self, Record *record) noexcept nogil:
        """Encode all units as one, since they refer to each other's DIEs."""
        cdef const Sections *sections = &self.context.sections.c
        cdef uint64_t size = sections.view[SEC_INFO].size + self.types_shift
        self.base = 0
        if size > <uint64_t>0xFFFFFFFF:
            return fail(
                &self.fault, "debug information is larger than 4 GiB and its units refer to each other", SEC_INFO, 0
            )
        return self.encode_units(0, self.context.units.count, size, record)

    cdef int encode_units(self, uint32_t first, uint32_t end, uint64_t size, Record *record) noexcept nogil:
        """Encode these units, of `size` bytes, into one record."""
        cdef uint32_t i
        self.all_parameters = False
        while True:
            if self.begin(record, size) < 0:
                return -1
            for i in range(first, end):
                if self.walk(i) < 0:
                    return -1
            if self.all_parameters or not self.lacks_origin():
                return self.finish()
            self.all_parameters = True

    cdef bint lacks_origin(self) noexcept nogil:
        """Whether a parameter is the concrete one of a parameter that was left out.

        No compiler makes one of another function's, but if it is there its name is known only from there.
        """
        cdef const FormalParameter *p
        cdef uint32_t i
        if not self.left_out:
            return False
        for i in range(self.nr_parameters):
            p = &self.parameters[i]
            if p.origin and self.find(p.origin, FOUND_PARAMETER) == 0:
                return True
        return False

    cdef int begin(self, Record *record, uint64_t size) noexcept nogil:
        self.record = record
        self.limit = size
        self.serial += 1
        record_clear(record)
        self.nr_frames = self.nr_scratch = self.nr_deferred = 0
        self.nr_functions = self.nr_parameters = self.nr_objects = self.nr_tags = 0
        self.nr_marks = self.nr_order = 0
        self.bytes += size
        self.rust = self.left_out = False
        if reserve(<void **>&self.first_mark, &self.first_marks_cap, (size >> MARK_SHIFT) + 1, sizeof(uint32_t)) < 0:
            return fail_memory(&self.fault)
        memset(self.first_mark, 0, <size_t>((size >> MARK_SHIFT) + 1) * sizeof(uint32_t))
        return 0

    cdef int fail_at(self, const char *what, uint64_t offset) noexcept nogil:
        return fail(&self.fault, what, self.unit.section, offset)

    cdef int charge(self, uint64_t steps) noexcept nogil:
        """Count steps that may outnumber the DIEs; -1 with `fault` when they do so absurdly."""
        self.work += steps
        if self.work > FREE_WORK + MAX_WORK * self.bytes:
            return self.fail_at("too much work: long location lists, or structs, shared or out of order", self.base)
        return 0

    cdef int follow(self, uint32_t annotation, uint32_t steps) noexcept nogil:
        """Count a link of a chain of annotations; -1 with `fault` when it has no end, or too many share it."""
        if steps > MAX_CHAIN:
            return self.fail_at("endless chain of annotations", self.base + annotation)
        self.links += 1
        if self.links > FREE_LINKS + self.bytes:
            return self.fail_at("too many DIEs share a long chain of annotations", self.base + annotation)
        return 0

    # References

    cdef uint32_t rel(self, uint64_t offset) noexcept nogil:
        """A DIE's offset in the walked unit's section, as offset from the record's start; 0: outside."""
        offset += self.shift
        return <uint32_t>offset if offset < self.limit else 0

    cdef uint32_t reference(self, const Die *die, unsigned int slot) noexcept nogil:
        """The `rel` that an attribute of class reference holds; 0: none that can be followed."""
        cdef uint16_t form
        cdef const Unit *unit
        if not has(die, slot):
            return 0
        form = die.form[slot]
        if form == DW_FORM_ref4 or form == DW_FORM_ref1 or form == DW_FORM_ref2 or form == DW_FORM_ref8:
            return self.rel(die.value[slot])
        if form == DW_FORM_ref_udata:
            return self.rel(die.value[slot])
        if form == DW_FORM_ref_addr:
            # Always into .debug_info.
            if self.base == 0:
                return self.rel(die.value[slot] - self.shift + self.types_shift)
            return self.rel(die.value[slot])
        if form == DW_FORM_ref_sig8 and self.base == 0:
            unit = self.context.units.type_unit(die.value[slot])
            if unit != NULL:
                return self.rel(
                    unit.offset + unit.type_offset - self.shift
                    + (self.types_shift if unit.section == SEC_INFO else 0)
                )
        return 0

    cdef uint32_t mark(self, uint32_t rel) noexcept nogil:
        """Let the DIE at `rel`, which comes after all marked so far, be found; its mark, or NO_MARK with `fault`."""
        cdef uint32_t index = self.nr_marks
        cdef uint32_t slot = rel >> MARK_SHIFT
        if index and rel <= self.marks[index - 1].rel:
            self.fail_at("DIEs that lie within one another", self.base + rel)
            return NO_MARK
        if reserve(<void **>&self.marks, &self.marks_cap, <uint64_t>index + 2, sizeof(Mark)) < 0:
            fail_memory(&self.fault)
            return NO_MARK
        # (`rel` is below `limit`, which the table covers)
        if self.first_mark[slot] == 0:
            self.first_mark[slot] = index + 1
        self.marks[index].rel = rel
        self.marks[index].value = 0
        self.marks[index + 1].rel = 0xFFFFFFFF  # where `find` stops
        self.nr_marks = index + 1
        return index

    cdef int set_mark(self, uint32_t mark, unsigned int kind, uint32_t index) noexcept nogil:
        """Let `find` find `index` (not 0) for this mark."""
        if index >= OWNER_MASK:
            return self.fail_at("too many DIEs in one unit", self.base)
        self.marks[mark].value = kind << OWNER_SHIFT | index
        return 0

    cdef uint32_t find(self, uint32_t rel, unsigned int kind) noexcept nogil:
        """1 + the index (types: the local id) of what was marked at `rel`; 0: nothing of this kind."""
        return find_mark(self.first_mark, self.marks, rel, kind)

    cdef uint32_t resolve(self, uint32_t rel) noexcept nogil:
        """The local type id of the type at `rel`; void when no type is there."""
        return self.find(rel, FOUND_TYPE)

    cdef int name_of(self, const Die *die, unsigned int slot, uint32_t missing, uint32_t *name) noexcept nogil:
        """The number of the string that a slot holds, `missing` where it holds none."""
        cdef uint64_t str_offset
        cdef const uint8_t *text
        cdef uint32_t id
        if not has(die, slot):
            name[0] = missing
            return 0
        if die.form[slot] == DW_FORM_strp and die.value[slot] <= <uint64_t>0xFFFFFFFF:
            id = self.name_at(<uint32_t>die.value[slot])
            if id == FAILED:
                return self.fail_at("string outside of its section", die.offset)
            name[0] = id & ~<uint32_t>NEW_NAME
            return 0
        text = die_text(&self.context.sections.c, &self.unit, die, slot, &str_offset)
        if text == NULL:
            return self.fail_at("string outside of its section, or of an unknown form", die.offset)
        if ~str_offset:
            id = pool_at(self.context.strings, str_offset)
        else:
            id = self.context.strings.intern(text, strlen(<const char *>text))
        if id == FAILED:
            return self.fail_at("string without an end, or one of too many that lie within one another", die.offset)
        name[0] = id
        return 0

    cdef uint32_t marked_new(self, uint32_t name) noexcept nogil:
        """The name, with NEW_NAME if the output may not have it yet."""
        if name and load_acquire(pool_offset(self.context.strings, name)) == 0:
            return name | NEW_NAME
        return name

    cdef uint32_t name_at(self, uint32_t offset) noexcept nogil:
        """The name at `offset` of .debug_str, with NEW_NAME where that applies; FAILED when there is none."""
        cdef const CachedName *cached = &self.cached[cache_slot(offset)]
        if cached.offset == offset and not cached.name & NEW_NAME:
            return cached.name
        return self.uncached_name_at(offset)

    cdef uint32_t uncached_name_at(self, uint32_t offset) noexcept nogil:
        cdef CachedName *cached = &self.cached[cache_slot(offset)]
        cdef uint32_t name = pool_at(self.context.strings, offset)
        if name != FAILED:
            name = self.marked_new(name)
            cached.offset = offset
            cached.name = name
        return name

    cdef int new_name_of(self, const Die *die, uint32_t *name) noexcept nogil:
        """DW_AT_name of what becomes a type or row, with NEW_NAME where that applies; 0 where there is none."""
        if has(die, SLOT_NAME) and die.form[SLOT_NAME] == DW_FORM_strp and die.value[SLOT_NAME] <= <uint64_t>0xFFFFFFFF:
            name[0] = self.name_at(<uint32_t>die.value[SLOT_NAME])
            return 0 if name[0] != FAILED else self.fail_at("string outside of its section", die.offset)
        if self.name_of(die, SLOT_NAME, 0, name) < 0:
            return -1
        name[0] = self.marked_new(name[0])
        return 0

    cdef int raw_name_of(self, const Die *die, uint32_t missing, uint32_t *name) noexcept nogil:
        """DW_AT_name as `number_of` takes it, for what is mostly left out; `missing` where it is absent."""
        if has(die, SLOT_NAME) and die.form[SLOT_NAME] == DW_FORM_strp and die.value[SLOT_NAME] < self.raw_limit:
            name[0] = RAW_NAME | <uint32_t>die.value[SLOT_NAME]
            return 0
        return self.name_of(die, SLOT_NAME, missing, name)

    cdef uint32_t number_of(self, uint32_t name) noexcept nogil:
        """The number of a name that may be raw; FAILED with `fault`."""
        if name & (RAW_NAME | NEW_NAME) == RAW_NAME:
            name = self.name_at(name & ~<uint32_t>RAW_NAME)
            if name == FAILED:
                self.fail_at("one of too many strings that lie within one another", self.base)
                return FAILED
        return name & ~<uint32_t>NEW_NAME if name != NO_NAME else NO_NAME

    cdef int use_name(self, uint32_t name) noexcept nogil:
        """List a string that the output may not hold yet."""
        cdef Record *r = self.record
        cdef uint32_t cap
        if name == 0 or load_acquire(pool_offset(self.context.strings, name)) != 0:
            return 0
        if name >= self.stamps_cap:
            cap = self.stamps_cap
            if reserve(<void **>&self.stamps, &self.stamps_cap, <uint64_t>name + 1, sizeof(uint32_t)) < 0:
                return fail_memory(&self.fault)
            memset(self.stamps + cap, 0, <size_t>(self.stamps_cap - cap) * sizeof(uint32_t))
        if self.stamps[name] == self.serial:
            return 0
        self.stamps[name] = self.serial
        if reserve(<void **>&r.new_names, &r.new_names_cap, <uint64_t>r.nr_new_names + 1, sizeof(uint32_t)) < 0:
            return fail_memory(&self.fault)
        r.new_names[r.nr_new_names] = name
        r.nr_new_names += 1
        return 0

    # The stack of open DIEs

    cdef Frame *push(self, unsigned int kind, uint32_t tag, uint64_t offset) noexcept nogil:
        """Open a DIE; NULL with `fault` when that goes too deep."""
        cdef Frame *frame
        if self.nr_frames >= MAX_DEPTH:
            self.fail_at("DIEs are nested too deep", offset)
            return NULL
        if reserve(<void **>&self.frames, &self.frames_cap, <uint64_t>self.nr_frames + 1, sizeof(Frame)) < 0:
            fail_memory(&self.fault)
            return NULL
        frame = &self.frames[self.nr_frames]
        self.nr_frames += 1
        memset(frame, 0, sizeof(Frame))
        frame.kind = <uint8_t>kind
        frame.tag = tag
        frame.rel = self.rel(offset)
        frame.mark = NO_MARK
        if kind <= LAST_MARKED:
            frame.mark = self.mark(frame.rel)
            if frame.mark == NO_MARK:
                return NULL
        frame.first_row = self.nr_scratch
        frame.first_deferred = self.nr_deferred
        frame.first_tag = self.nr_tags
        return frame

    cdef int skip_children(self, Cursor *c, const Die *die) noexcept nogil:
        """Leave `c` behind the children of `die`."""
        cdef uint64_t sibling
        if not die.children:
            return 0
        if has(die, SLOT_SIBLING):
            sibling = die.value[SLOT_SIBLING]
            if sibling <= cursor_tell(c) or sibling > self.unit.end:
                return self.fail_at("DW_AT_sibling does not point forward", die.offset)
            c.at = c.start + sibling
            return 0
        return self.skip_nested(c)

    cdef int skip_nested(self, Cursor *c) noexcept nogil:
        """Leave `c` behind the end of the list of DIEs that it is in."""
        cdef Die die
        cdef uint64_t depth = 1
        cdef uint64_t sibling
        while depth:
            if not read_die(c, &self.abbrevs, self.unit.offset, &die):
                return self.fail_at("DIE is cut short or has no abbreviation", die.offset)
            if die.tag == 0:
                depth -= 1
            elif die.children:
                if has(&die, SLOT_SIBLING):
                    sibling = die.value[SLOT_SIBLING]
                    if sibling <= cursor_tell(c) or sibling > self.unit.end:
                        return self.fail_at("DW_AT_sibling does not point forward", die.offset)
                    c.at = c.start + sibling
                else:
                    depth += 1
            if depth and cursor_left(c) == 0:
                return 0  # the unit ends without closing its lists: as if it had
        return 0

    cdef int walk(self, uint32_t index) noexcept nogil:
        """Walk one unit into the record."""
        cdef Cursor c
        cdef Die die
        cdef uint64_t str_offset
        cdef const uint8_t *text
        cdef int status
        self.unit = self.context.units.units[index]
        self.unit_index = index
        self.shift = -self.base
        if self.base == 0 and self.unit.section == SEC_INFO:
            self.shift = self.types_shift
        status = unit_start(&self.context.sections.c, &self.unit, &self.abbrevs, &c, &die, &self.fault)
        if status <= 0:
            return status
        # What the first DIE says is needed again for the unit's parameters;
        # each unit is walked once, so no other thread looks at this entry.
        self.context.units.units[index] = self.unit
        if (
            die.tag != DW_TAG_compile_unit and die.tag != DW_TAG_type_unit
            and not (die.tag == DW_TAG_partial_unit and self.context.merge_units)
        ):
            if die.tag == DW_TAG_skeleton_unit:
                self.context.has_skeletons = True
                return 0
            if die.tag == DW_TAG_partial_unit:
                return 0  # its types are taken where they are imported
            return self.fail_at("unit does not start with a unit DIE", die.offset)
        if has(&die, SLOT_DWO_NAME) and not die.children:
            # The skeleton units of before DWARF 5.
            self.context.has_skeletons = True
            return 0
        if not self.context.takes_language(self.unit.language):
            return 0
        if self.context.cu_exclude is not None:
            text = NULL
            if has(&die, SLOT_NAME):
                text = die_text(&self.context.sections.c, &self.unit, &die, SLOT_NAME, &str_offset)
            if text == NULL or self.excluded(text):
                return 0
        self.clang = False
        if has(&die, SLOT_PRODUCER):
            text = die_text(&self.context.sections.c, &self.unit, &die, SLOT_PRODUCER, &str_offset)
            # A string in .debug_str is only known to have an end once it was interned.
            if text != NULL and (
                not ~str_offset or self.context.strings.intern_str_offset(str_offset) != FAILED
            ):
                # Units may share it, and it may be long.
                if self.context.strings.charge(strlen(<const char *>text)) < 0:
                    return self.fail_at("one of too many long strings", die.offset)
                self.clang = strstr(<const char *>text, "clang") != NULL
        if self.unit.language == DW_LANG_Rust:
            self.rust = True
        if not die.children:
            return 0
        if self.push(IN_UNIT, die.tag, die.offset) == NULL:
            return -1
        return self.walk_children(&c)

    cdef bint excluded(self, const uint8_t *text) noexcept nogil:
        """Whether the unit's name starts with --cu_exclude's prefix."""
        cdef const char *prefix
        with gil:
            prefix = self.context.cu_exclude
        return strncmp(<const char *>text, prefix, strlen(prefix)) == 0

    cdef int walk_children(self, Cursor *c) noexcept nogil:
        cdef Die die
        cdef const Abbrev *abbrev
        cdef uint64_t code
        cdef const uint8_t *attributes
        cdef int done
        while self.nr_frames:
            if cursor_left(c) == 0:
                # The last lists of a unit may go without their end.
                if self.close() < 0:
                    return -1
                continue
            die.offset = cursor_tell(c)
            code = read_uleb(c)
            if code == 0 and not c.failed:
                if self.close() < 0:
                    return -1
                continue
            abbrev = abbrev_find(&self.abbrevs, code)
            if abbrev == NULL:
                return self.fail_at("DIE is cut short or has no abbreviation", die.offset)
            if abbrev.plain.shape != SHAPE_NONE:
                attributes = c.at
                done = self.visit_plain(c, abbrev, die.offset)
                if done < 0:
                    return -1
                if done:
                    if abbrev.plain.shape == SHAPE_MEMBER and self.walk_members(c) < 0:
                        return -1
                    continue
                c.at = attributes
            read_attributes(c, &self.abbrevs, self.unit.offset, abbrev, &die)
            if c.failed:
                return self.fail_at("DIE is cut short or has no abbreviation", die.offset)
            if self.visit(c, &die) < 0:
                return -1
        return 0

    cdef int walk_members(self, Cursor *c) noexcept nogil:
        """Take the plain members that come next in a struct or union; `c` is left at the first DIE that is none.

        Half of all DIEs are members: with all that a member needs at hand in
        one loop, they take a third of the time that they do in `visit_plain`.
        """
        cdef Frame *frame = &self.frames[self.nr_frames - 1]
        cdef const Abbrev *items = self.abbrevs.items
        cdef uint32_t nr_items = self.abbrevs.nr_items if self.abbrevs.dense else 0
        cdef const Plain *plain
        cdef const uint8_t *end = c.end
        cdef const uint8_t *at = c.at  # the DIE
        cdef const uint8_t *p  # its attributes
        cdef bint big = c.big
        cdef bint is_union = frame.tag == DW_TAG_union_type
        cdef uint64_t unit = self.unit.offset + self.shift
        cdef uint64_t limit = self.limit
        cdef uint64_t type
        cdef uint32_t code, name, value
        cdef uint32_t count = 0
        cdef Row *row
        while True:
            # Room for a run of members, which `frame.nr_children` limits too.
            if reserve(<void **>&self.scratch, &self.scratch_cap, <uint64_t>self.nr_scratch + RUN, sizeof(Row)) < 0:
                return fail_memory(&self.fault)
            row = self.scratch + self.nr_scratch
            count = 0
            while count < RUN and end - at >= 2:
                code = at[0]
                p = at + 1
                if code >= 0x80:
                    code = (code & 0x7F) | <uint32_t>at[1] << 7
                    p = at + 2
                if code - 1 >= nr_items or code >= 1 << 14:
                    break
                plain = &items[code - 1].plain
                if plain.shape != SHAPE_MEMBER or plain.inline_name or end - p < plain.size:
                    break
                # Everything below lies within the `size` bytes that were checked.
                name = 0
                if plain.name != NOWHERE:
                    name = load_u32(p + plain.name, big)
                    if name >= self.raw_limit:
                        break
                    name |= RAW_NAME
                if plain.number_size == 1:
                    value = p[plain.number]
                elif plain.number_size == 2:
                    value = load_u16(p + plain.number, big)
                elif plain.number_size == 0:
                    value = <uint32_t>plain.constant
                else:
                    break
                if is_union and value & 0x1FFFFF:
                    break
                type = 0
                if plain.type != NOWHERE:
                    type = unit + load_u32(p + plain.type, big)
                    if type >= limit:
                        type = 0
                row.name = name
                row.type = <uint32_t>type
                row.value = value * 8
                row += 1
                count += 1
                at = p + plain.size
            c.at = at
            if frame.nr_children + count > BTF_MAX_VLEN:
                return self.fail_at("struct with more members than BTF can count", cursor_tell(c))
            frame.nr_children += count
            self.nr_scratch += count
            if count < RUN:
                return 0

    cdef int visit_plain(self, Cursor *c, const Abbrev *abbrev, uint64_t offset) noexcept nogil:
        """Take a DIE of one of the shapes that are read without steps; `c` is behind its code.

        1 when that is done, and `c` behind the DIE; 0, having changed nothing but `c`, where `visit` has to take it:
        for what is wrong, too, so that each fault is found in one place.
        """
        cdef Frame *frame = &self.frames[self.nr_frames - 1]
        cdef const Plain *plain = &abbrev.plain
        cdef unsigned int shape = plain.shape
        cdef unsigned int kind = frame.kind
        cdef bint big = c.big
        cdef const uint8_t *p = c.at
        cdef const uint8_t *text = NULL
        cdef uint32_t name = 0
        cdef uint32_t type = 0
        cdef uint32_t mark
        cdef uint64_t number
        cdef Row *row
        if not (
            kind == IN_CLASS if shape == SHAPE_MEMBER
            else kind == IN_ENUMERATION if shape == SHAPE_ENUMERATOR
            else kind == IN_SUBROUTINE if shape == SHAPE_PARAMETER
            else kind != IN_ENUMERATION and kind != IN_ARRAY and kind != IN_POINTER and kind != IN_ANNOTATED
        ):
            return 0
        # The bounds of all that is read below.
        if plain.inline_name:
            text = p
            p = <const uint8_t *>memchr(p, 0, <size_t>(c.end - p)) if p < c.end else NULL
            if p == NULL:
                return 0
            p += 1
        if c.end - p < plain.size:
            return 0
        if text != NULL:
            name = self.context.strings.intern(text, <uint64_t>(p - text - 1))
            if name == FAILED:
                return 0
            name = self.marked_new(name)
        elif plain.name != NOWHERE:
            name = load_u32(p + plain.name, big)
            if name >= self.raw_limit:
                return 0
            name |= RAW_NAME
        if plain.type != NOWHERE:
            type = self.rel(self.unit.offset + load_u32(p + plain.type, big))
        if shape == SHAPE_FRAME:
            # (closing it asks whether it has a name)
            if name & (RAW_NAME | NEW_NAME) == RAW_NAME:
                name = self.name_at(name & ~<uint32_t>RAW_NAME)
                if name == FAILED:
                    return 0
            frame = self.push(frame_kind(abbrev.tag), abbrev.tag, offset)
            if frame == NULL:
                return -1
            frame.name = name
            frame.type = type
            frame.size = <uint32_t>plain_number(plain, p, big)
            c.at = p + plain.size
            return self.walk_members(c) + 1 if frame.kind == IN_CLASS else 1
        if shape == SHAPE_REFERENCE:
            mark = self.mark(self.rel(offset))
            if mark == NO_MARK or self.add_type(
                mark, abbrev.tag, 0, name, make_info(reference_kind(abbrev.tag), 0, False), type, 0, REF_REL
            ) == 0:
                return -1
            c.at = p + plain.size
            return 1
        if frame.nr_children >= BTF_MAX_VLEN - 1:
            return 0
        number = plain_number(plain, p, big)
        if reserve(<void **>&self.scratch, &self.scratch_cap, <uint64_t>self.nr_scratch + 1, sizeof(Row)) < 0:
            return fail_memory(&self.fault)
        row = &self.scratch[self.nr_scratch]
        row.name = name
        if shape == SHAPE_ENUMERATOR:
            if name == 0:
                return 0
            row.type = <uint32_t>number
            row.value = <uint32_t>(number >> 32)
        else:
            row.type = type
            row.value = 0
            if shape == SHAPE_MEMBER:
                row.value = <uint32_t>number * 8
                if row.value & 0xFFFFFF and frame.tag == DW_TAG_union_type:
                    return 0
        self.nr_scratch += 1
        frame.nr_children += 1
        c.at = p + plain.size
        return 1

    cdef int visit(self, Cursor *c, const Die *die) noexcept nogil:
        """Take one child of the innermost open DIE."""
        cdef Frame *frame = &self.frames[self.nr_frames - 1]
        cdef unsigned int kind = frame.kind
        cdef uint32_t tag = die.tag
        if kind == IN_CLASS:
            if tag == DW_TAG_member:
                return self.visit_member(c, frame, die)
            if tag == DW_TAG_LLVM_annotation or tag == DW_TAG_GNU_annotation:
                return self.note_annotation(die, <uint32_t>OWNER_FRAME << OWNER_SHIFT | self.nr_frames, -1)
        elif kind == IN_ENUMERATION:
            if tag == DW_TAG_enumerator:
                if self.visit_enumerator(die) < 0:
                    return -1
                frame.nr_children += 1
            return self.skip_children(c, die)
        elif kind == IN_ARRAY:
            if tag == DW_TAG_subrange_type and frame.nr_children < MAX_DIMENSIONS:
                if self.visit_subrange(die) < 0:
                    return -1
                frame.nr_children += 1
            return self.skip_children(c, die)
        elif kind == IN_FUNCTION or kind == IN_BLOCK:
            if tag == DW_TAG_lexical_block:
                if die.children and self.push(IN_BLOCK, die.tag, die.offset) == NULL:
                    return -1
                return 0
            if kind == IN_FUNCTION:
                if tag == DW_TAG_formal_parameter:
                    return self.visit_parameter(c, frame, die)
                if tag == DW_TAG_unspecified_parameters:
                    self.functions[frame.index].varargs = True
                    return self.skip_children(c, die)
                if tag == DW_TAG_LLVM_annotation or tag == DW_TAG_GNU_annotation:
                    return self.note_annotation(die, <uint32_t>OWNER_FUNCTION << OWNER_SHIFT | frame.index, -1)
            elif tag == DW_TAG_formal_parameter:
                return self.skip_children(c, die)
        elif kind == IN_SUBROUTINE:
            if tag == DW_TAG_formal_parameter:
                return self.visit_parameter(c, frame, die)
            if tag == DW_TAG_unspecified_parameters:
                frame.flag = True
                return self.skip_children(c, die)
        elif kind == IN_POINTER:
            if tag == DW_TAG_LLVM_annotation or tag == DW_TAG_GNU_annotation:
                return self.note_pointer_tag(frame, die)
            return self.skip_children(c, die)
        elif kind == IN_ANNOTATED:
            if tag == DW_TAG_LLVM_annotation or tag == DW_TAG_GNU_annotation:
                if self.note_annotation(die, frame.index, frame.component) < 0:
                    return -1
            return self.skip_children(c, die)
        return self.visit_common(c, die, kind == IN_UNIT)

    cdef int visit_common(self, Cursor *c, const Die *die, bint top_level) noexcept nogil:
        """Take a DIE that may stand in units, namespaces, structs and functions alike."""
        cdef Frame *frame
        cdef uint32_t tag = die.tag
        cdef uint32_t name, id, mark
        cdef uint64_t number
        if tag == DW_TAG_pointer_type:
            return self.visit_pointer(c, die)
        if tag == DW_TAG_const_type or tag == DW_TAG_volatile_type or tag == DW_TAG_restrict_type:
            mark = self.mark(self.rel(die.offset))
            if mark == NO_MARK:
                return -1
            id = self.add_type(
                mark, tag, 0, 0,
                make_info(reference_kind(tag), 0, False),
                self.reference(die, SLOT_TYPE), 0, REF_REL,
            )
            return -1 if id == 0 else self.skip_children(c, die)
        if (
            tag == DW_TAG_structure_type or tag == DW_TAG_union_type or tag == DW_TAG_class_type
            or tag == DW_TAG_interface_type
        ):
            frame = self.push(IN_CLASS, die.tag, die.offset)
            if frame == NULL:
                return -1
            if self.new_name_of(die, &name) < 0:
                return -1
            frame.name = name
            frame.type = self.reference(die, SLOT_SPECIFICATION)
            number = 0
            die_number(die, SLOT_BYTE_SIZE, &number)
            frame.size = <uint32_t>number
            number = 0
            die_number(die, SLOT_DECLARATION, &number)
            frame.flag = number != 0
            frame.index = self.reference(die, SLOT_ANNOTATION)
            return self.walk_members(c) if die.children else self.close()
        if tag == DW_TAG_typedef:
            if self.new_name_of(die, &name) < 0:
                return -1
            mark = self.mark(self.rel(die.offset))
            if mark == NO_MARK:
                return -1
            id = self.add_type(
                mark, tag, 0, name, make_info(BTF_KIND_TYPEDEF, 0, False),
                self.reference(die, SLOT_TYPE), 0, REF_REL,
            )
            if id == 0:
                return -1
            if not die.children:
                return 0
            return self.annotate(die, <uint32_t>OWNER_TYPE << OWNER_SHIFT | id, -1)
        if tag == DW_TAG_subprogram:
            return self.visit_function(c, die)
        if tag == DW_TAG_variable:
            return self.visit_variable(c, die, top_level)
        if tag == DW_TAG_array_type:
            frame = self.push(IN_ARRAY, die.tag, die.offset)
            if frame == NULL:
                return -1
            number = 0
            die_number(die, SLOT_BYTE_SIZE, &number)
            frame.size = <uint32_t>number
            frame.type = self.reference(die, SLOT_TYPE)
            return 0 if die.children else self.close()
        if tag == DW_TAG_enumeration_type:
            frame = self.push(IN_ENUMERATION, die.tag, die.offset)
            if frame == NULL:
                return -1
            if self.new_name_of(die, &name) < 0:
                return -1
            frame.name = name
            number = 0
            die_number(die, SLOT_BYTE_SIZE, &number)
            frame.size = <uint32_t>number
            frame.type = self.reference(die, SLOT_TYPE)
            return 0 if die.children else self.close()
        if tag == DW_TAG_subroutine_type:
            frame = self.push(IN_SUBROUTINE, die.tag, die.offset)
            if frame == NULL:
                return -1
            number = 0
            die_number(die, SLOT_BYTE_SIZE, &number)
            frame.size = <uint32_t>number
            frame.type = self.reference(die, SLOT_TYPE)
            return 0 if die.children else self.close()
        if tag == DW_TAG_base_type:
            if self.visit_base_type(die) < 0:
                return -1
            return self.skip_children(c, die)
        if tag == DW_TAG_namespace:
            if die.children and self.push(IN_NAMESPACE, die.tag, die.offset) == NULL:
                return -1
            return 0
        if (
            tag == DW_TAG_reference_type or tag == DW_TAG_rvalue_reference_type or tag == DW_TAG_ptr_to_member_type
            or tag == DW_TAG_string_type or tag == DW_TAG_atomic_type
        ):
            return self.fail_at("type of a kind that BTF does not have (of C++, Rust or Fortran?)", die.offset)
        # Inlined functions, calls, labels, templates, imports; DW_TAG_unspecified_type is void.
        return self.skip_children(c, die)

    # Types

    cdef uint32_t add_type(
        self, uint32_t mark, uint32_t tag, uint32_t byte_size,
        uint32_t name, uint32_t info, uint32_t ref, uint32_t extra, uint64_t state
    ) noexcept nogil:
        """Number a type; 0 with `fault`.  `mark` is that of its DIE, or NO_MARK where there is none to refer to."""
        cdef Record *r = self.record
        cdef Type *t
        cdef uint32_t id
        if r.nr_types == 0:
            # Id 0 is void.
            if reserve(<void **>&r.types, &r.types_cap, 64, sizeof(Type)) < 0:
                fail_memory(&self.fault)
                return 0
            if reserve(<void **>&self.extras, &self.extras_cap, 64, sizeof(Extra)) < 0:
                fail_memory(&self.fault)
                return 0
            memset(&r.types[0], 0, sizeof(Type))
            memset(&self.extras[0], 0, sizeof(Extra))
        id = r.nr_types + 1
        if (
            reserve(<void **>&r.types, &r.types_cap, <uint64_t>id + 1, sizeof(Type)) < 0
            or reserve(<void **>&self.extras, &self.extras_cap, <uint64_t>id + 1, sizeof(Extra)) < 0
        ):
            fail_memory(&self.fault)
            return 0
        r.nr_types = id
        t = &r.types[id]
        t.name = name
        t.info = info
        t.ref = ref
        t.extra = extra
        t.hash = state
        self.extras[id].raw = 0
        self.extras[id].byte_size = byte_size
        self.extras[id].tag = <uint16_t>tag
        self.extras[id].alignment = 0
        self.extras[id].packed = PACKED_UNKNOWN
        if mark != NO_MARK and self.set_mark(mark, FOUND_TYPE, id) < 0:
            return 0
        return id

    cdef int64_t move_rows(self, uint32_t first) noexcept nogil:
        """Move the scratch rows from `first` on to the record; where they start there, or -1."""
        cdef Record *r = self.record
        cdef uint32_t count = self.nr_scratch - first
        cdef uint32_t start = r.nr_rows
        if reserve(<void **>&r.rows, &r.rows_cap, <uint64_t>start + count, sizeof(Row)) < 0:
            return fail_memory(&self.fault)
        if count:
            memcpy(r.rows + start, self.scratch + first, <size_t>count * sizeof(Row))
        r.nr_rows = start + count
        self.nr_scratch = first
        return start

    cdef int visit_base_type(self, const Die *die) noexcept nogil:
        cdef uint64_t bytes = 0
        cdef uint64_t encoding = 0
        cdef uint32_t name, size, mark
        cdef uint32_t flags = 0
        cdef bint is_float = False
        if self.new_name_of(die, &name) < 0:
            return -1
        die_number(die, SLOT_BYTE_SIZE, &bytes)
        die_number(die, SLOT_ENCODING, &encoding)
        # pahole keeps the size in bits in 16 bits.
        size = <uint32_t>((bytes * 8 & 0xFFFF) + 7) >> 3
        if encoding == DW_ATE_signed or encoding == DW_ATE_signed_char:
            flags = BTF_INT_SIGNED
        elif encoding == DW_ATE_boolean:
            flags = BTF_INT_BOOL
        elif encoding == DW_ATE_float and self.context.options.floats:
            is_float = True
        elif (encoding == DW_ATE_complex_float or encoding == DW_ATE_imaginary_float) and self.context.options.floats:
            return self.fail_at("complex floating point type, which BTF does not have", die.offset)
        if name == 0:
            return self.fail_at("base type without a name", die.offset)
        mark = self.mark(self.rel(die.offset))
        if mark == NO_MARK:
            return -1
        if is_float:
            if size != 2 and size != 4 and size != 8 and size != 12 and size != 16:
                return self.fail_at("floating point type of a size that BTF does not have", die.offset)
            if self.add_type(
                mark, die.tag, <uint32_t>bytes, name, make_info(BTF_KIND_FLOAT, 0, False),
                size, 0, REF_LOCAL,
            ) == 0:
                return -1
            return 0
        if size == 0 or size & (size - 1) or size > 16:
            # Only expressions use such types; BTF needs something in their place.
            name = NEW_NAME | self.name_fake_int
            size = 4
        if self.add_type(
            mark, die.tag, <uint32_t>bytes, name, make_info(BTF_KIND_INT, 0, False),
            size, flags << 24 | size * 8, REF_LOCAL,
        ) == 0:
            return -1
        if name & ~<uint32_t>NEW_NAME == self.name_int and self.record.int_type == 0:
            self.record.int_type = self.record.nr_types
        return 0

    cdef int visit_pointer(self, Cursor *c, const Die *die) noexcept nogil:
        cdef Frame *frame
        cdef uint32_t mark
        if self.context.options.type_tags and (die.children or has(die, SLOT_ANNOTATION)):
            frame = self.push(IN_POINTER, die.tag, die.offset)
            if frame == NULL:
                return -1
            frame.type = self.reference(die, SLOT_TYPE)
            # gcc's form of the same: a chain of DIEs elsewhere.
            frame.index = self.reference(die, SLOT_ANNOTATION)
            return 0 if die.children else self.close()
        mark = self.mark(self.rel(die.offset))
        if mark == NO_MARK:
            return -1
        if self.add_type(
            mark, die.tag, 0, 0, make_info(BTF_KIND_PTR, 0, False),
            self.reference(die, SLOT_TYPE), 0, REF_REL,
        ) == 0:
            return -1
        return self.skip_children(c, die)

    cdef int note_pointer_tag(self, Frame *frame, const Die *die) noexcept nogil:
        """Number a type tag of a pointer, and remember it in the scratch rows."""
        cdef uint32_t name
        cdef uint32_t id
        cdef int is_tag = self.is_annotation(die, "btf_type_tag")
        if is_tag <= 0:
            return is_tag
        if self.name_of(die, SLOT_CONST_VALUE, 0, &name) < 0:
            return -1
        if name == 0:
            return self.fail_at("type tag without a value", die.offset)
        name |= NEW_NAME
        # Several pointers may share one annotation DIE; nothing refers to it as a type.
        id = self.add_type(
            NO_MARK, DW_TAG_LLVM_annotation, 0, name, make_info(BTF_KIND_TYPE_TAG, 0, False), 0, 0, REF_LOCAL
        )
        if id == 0:
            return -1
        if reserve(<void **>&self.scratch, &self.scratch_cap, <uint64_t>self.nr_scratch + 1, sizeof(Row)) < 0:
            return fail_memory(&self.fault)
        self.scratch[self.nr_scratch].value = id
        self.nr_scratch += 1
        frame.nr_children += 1
        return 0

    cdef int close_pointer(self, const Frame *frame) noexcept nogil:
        """Chain pointer, tags and pointee; of tags in the source's order the last stands next to the pointer."""
        cdef Die die
        cdef Type *types
        cdef uint32_t annotation = frame.index
        cdef uint32_t count = frame.nr_children
        cdef uint32_t steps = 0
        cdef uint32_t i, j, id, previous
        cdef bint gcc = False
        cdef Frame *open_frame = &self.frames[self.nr_frames - 1]
        if count == 0:
            gcc = True
            while annotation:
                steps += 1
                if self.follow(annotation, steps) < 0:
                    return -1
                if self.read_rel(annotation, &die) < 0:
                    return -1
                if die.tag != DW_TAG_GNU_annotation:
                    break
                i = self.nr_scratch
                if self.note_pointer_tag(open_frame, &die) < 0:
                    return -1
                if self.nr_scratch == i:
                    break
                annotation = self.reference(&die, SLOT_ANNOTATION)
            count = open_frame.nr_children
        previous = self.add_type(
            frame.mark, DW_TAG_pointer_type, 0, 0, make_info(BTF_KIND_PTR, 0, False), frame.type, 0, REF_REL
        )
        if previous == 0:
            return -1
        types = self.record.types
        for i in range(count):
            j = i if gcc else count - 1 - i
            id = self.scratch[frame.first_row + j].value
            types[previous].ref = id
            types[previous].hash = REF_LOCAL
            types[id].ref = frame.type
            types[id].hash = REF_REL
            previous = id
        self.nr_scratch = frame.first_row
        return 0

    cdef int visit_member(self, Cursor *c, Frame *frame, const Die *die) noexcept nogil:
        cdef Row *row
        cdef DeferredBits *bits
        cdef uint32_t owner = <uint32_t>OWNER_FRAME << OWNER_SHIFT | self.nr_frames
        cdef int component = <int>frame.nr_children
        cdef uint64_t number = 0
        cdef uint64_t offset = 0
        cdef uint32_t size
        cdef Location location
        if frame.nr_children >= BTF_MAX_VLEN:
            return self.fail_at("struct with more members than BTF can count", die.offset)
        if reserve(<void **>&self.scratch, &self.scratch_cap, <uint64_t>self.nr_scratch + 1, sizeof(Row)) < 0:
            return fail_memory(&self.fault)
        row = &self.scratch[self.nr_scratch]
        if self.new_name_of(die, &row.name) < 0:
            return -1
        row.type = self.reference(die, SLOT_TYPE)
        row.value = 0
        size = 0
        if has(die, SLOT_BIT_SIZE):
            die_number(die, SLOT_BIT_SIZE, &number)
            size = <uint32_t>number & 0xFF  # pahole keeps 8 bits
        if has(die, SLOT_DATA_BIT_OFFSET):
            if not die_number(die, SLOT_DATA_BIT_OFFSET, &offset):
                offset = 0
            row.value = <uint32_t>offset
        elif has(die, SLOT_MEMBER_LOCATION):
            if not die_number(die, SLOT_MEMBER_LOCATION, &offset):
                location.value = die.value[SLOT_MEMBER_LOCATION]
                location.length = die.length[SLOT_MEMBER_LOCATION]
                location.form = die.form[SLOT_MEMBER_LOCATION]
                if not block_constant(&self.context.sections.c, &location, self.unit.section, &offset):
                    return self.fail_at("member at an offset that is not a constant", die.offset)
            row.value = <uint32_t>offset * 8
        if size and not has(die, SLOT_DATA_BIT_OFFSET):
            # The older style: how many bits lie before the field depends on
            # the byte order and on the size of its type.
            if reserve(
                <void **>&self.deferred, &self.deferred_cap, <uint64_t>self.nr_deferred + 1, sizeof(DeferredBits)
            ) < 0:
                return fail_memory(&self.fault)
            bits = &self.deferred[self.nr_deferred]
            self.nr_deferred += 1
            number = 0
            die_number(die, SLOT_BIT_OFFSET, &number)
            bits.bit_offset = <int8_t>number
            number = 0
            die_number(die, SLOT_BYTE_SIZE, &number)
            bits.byte_size = <uint32_t>number
            bits.byte_offset = <uint32_t>offset
            bits.bits = <uint8_t>size
            bits.row = self.nr_scratch
            bits.placed = False
        elif size:
            if row.value > 0xFFFFFF:
                return self.fail_at("bit field further from the struct's start than BTF can say", die.offset)
            row.value |= size << 24
        if size:
            frame.flag_bits = True
        elif row.value & 7:
            return self.fail_at("member that starts within a byte but is no bit field", die.offset)
        # (bit fields of the older style have no offset yet)
        if frame.tag == DW_TAG_union_type and row.value & 0xFFFFFF and (not size or has(die, SLOT_DATA_BIT_OFFSET)):
            return self.fail_at("union member that does not lie at its start", die.offset)
        self.nr_scratch += 1
        frame.nr_children += 1
        if self.note_gnu_chain(self.reference(die, SLOT_ANNOTATION), owner, component) < 0:
            return -1
        if not die.children:
            return 0
        return self.annotate(die, owner, component)

    cdef int close_class(self, const Frame *frame) noexcept nogil:
        cdef uint32_t count = self.nr_scratch - frame.first_row
        cdef uint32_t owner = <uint32_t>OWNER_FRAME << OWNER_SHIFT | self.nr_frames
        cdef uint32_t info, id, i
        cdef int64_t start
        cdef bint is_union = frame.tag == DW_TAG_union_type
        if not is_union and self.note_gnu_chain(frame.index, owner, -1) < 0:
            return -1
        if frame.flag:
            if frame.name == 0:
                return self.fail_at("declaration of a struct without a name", self.base + frame.rel)
            self.nr_scratch = frame.first_row
            self.nr_deferred = frame.first_deferred
            id = self.add_type(
                frame.mark, frame.tag, frame.size, frame.name, make_info(BTF_KIND_FWD, 0, is_union), 0, 0,
                REF_LOCAL,
            )
        else:
            start = self.move_rows(frame.first_row)
            if start < 0:
                return -1
            for i in range(frame.first_deferred, self.nr_deferred):
                if not self.deferred[i].placed:
                    self.deferred[i].row = self.deferred[i].row - frame.first_row + <uint32_t>start
                    self.deferred[i].placed = True
            info = make_info(BTF_KIND_UNION if is_union else BTF_KIND_STRUCT, count, frame.flag_bits)
            if self.rust and self.sort_rust_members(<uint32_t>start, count) < 0:
                return -1
            id = self.add_type(
                frame.mark, frame.tag, frame.size, frame.name, info, frame.size, <uint32_t>start, frame.type
            )
            # (what has no values yet, or no name, cannot be hashed)
            if id != 0 and frame.first_deferred == self.nr_deferred and frame.type == 0:
                self.extras[id].raw = self.raw_hash(&self.record.types[id])
        if id == 0:
            return -1
        for i in range(frame.first_tag, self.nr_tags):
            if self.tags[i].owner == owner:
                self.tags[i].owner = <uint32_t>OWNER_TYPE << OWNER_SHIFT | id
        return 0

    cdef int sort_rust_members(self, uint32_t first, uint32_t count) noexcept nogil:
        """Rust orders members as it likes; they are listed by offset, equal ones as they come."""
        cdef Row *rows = self.record.rows + first
        cdef Row row
        cdef uint32_t i, j
        for i in range(1, count):
            row = rows[i]
            j = i
            while j > 0 and rows[j - 1].value > row.value:
                rows[j] = rows[j - 1]
                j -= 1
            rows[j] = row
            if self.charge(i - j) < 0:
                return -1
        return 0

    cdef int visit_enumerator(self, const Die *die) noexcept nogil:
        cdef Row *row
        cdef uint64_t value = 0
        if self.nr_scratch - self.frames[self.nr_frames - 1].first_row >= BTF_MAX_VLEN:
            return self.fail_at("enumeration with more values than BTF can count", die.offset)
        if reserve(<void **>&self.scratch, &self.scratch_cap, <uint64_t>self.nr_scratch + 1, sizeof(Row)) < 0:
            return fail_memory(&self.fault)
        row = &self.scratch[self.nr_scratch]
        if self.new_name_of(die, &row.name) < 0:
            return -1
        if row.name == 0:
            return self.fail_at("enumerator without a name", die.offset)
        die_number(die, SLOT_CONST_VALUE, &value)
        row.type = <uint32_t>value
        row.value = <uint32_t>(value >> 32)
        self.nr_scratch += 1
        return 0

    cdef int close_enumeration(self, const Frame *frame) noexcept nogil:
        cdef uint32_t count = self.nr_scratch - frame.first_row
        cdef uint32_t size = frame.size if frame.size else 4
        cdef bint narrow = size <= 4 or not self.context.options.enum64
        cdef bint negative = False
        cdef int64_t value
        cdef uint32_t i, id
        cdef int64_t start
        cdef Row *row
        if size & (size - 1) or size > 8:
            return self.fail_at("enumeration of a size that BTF does not have", self.base + frame.rel)
        if narrow:
            for i in range(count):
                row = &self.scratch[frame.first_row + i]
                value = <int64_t>(<uint64_t>row.value << 32 | row.type)
                if self.context.options.enum64:
                    if value < -<int64_t>0x80000000 or value > <int64_t>0xFFFFFFFF:
                        return self.fail_at("enumerator that does not fit its enumeration", self.base + frame.rel)
                    negative = negative or value < 0
                row.value = 0
        start = self.move_rows(frame.first_row)
        if start < 0:
            return -1
        # Whether an ENUM64 is signed depends on its type, see `finish_types`.
        id = self.add_type(
            frame.mark, frame.tag, frame.size, frame.name,
            make_info(BTF_KIND_ENUM if narrow else BTF_KIND_ENUM64, count, negative), size, <uint32_t>start, frame.type,
        )
        if id == 0:
            return -1
        if narrow:
            self.extras[id].raw = self.raw_hash(&self.record.types[id])
        return 0

    cdef int visit_subrange(self, const Die *die) noexcept nogil:
        """Remember how many elements one dimension has; 0 where it is not a constant."""
        cdef uint64_t number
        cdef uint32_t count = 0
        if has(die, SLOT_UPPER_BOUND):
            if die_number(die, SLOT_UPPER_BOUND, &number):
                count = <uint32_t>(number + 1)
        elif die_number(die, SLOT_COUNT, &number):
            count = <uint32_t>number
        if reserve(<void **>&self.scratch, &self.scratch_cap, <uint64_t>self.nr_scratch + 1, sizeof(Row)) < 0:
            return fail_memory(&self.fault)
        self.scratch[self.nr_scratch].value = count
        self.nr_scratch += 1
        return 0

    cdef int close_array(self, const Frame *frame) noexcept nogil:
        """One ARRAY a dimension, the innermost first; references mean the outermost."""
        cdef uint32_t i
        cdef uint32_t id = 0
        cdef uint32_t count = frame.nr_children
        self.record.has_array = True
        if count == 0:
            if reserve(<void **>&self.scratch, &self.scratch_cap, <uint64_t>self.nr_scratch + 1, sizeof(Row)) < 0:
                return fail_memory(&self.fault)
            self.scratch[self.nr_scratch].value = 1
            count = 1
        for i in range(count):
            id = self.add_type(
                frame.mark if i == count - 1 else NO_MARK, frame.tag, frame.size if i == count - 1 else 0,
                0, make_info(BTF_KIND_ARRAY, 0, False),
                id if i else frame.type, self.scratch[frame.first_row + count - 1 - i].value,
                REF_LOCAL if i else REF_REL,
            )
            if id == 0:
                return -1
        self.nr_scratch = frame.first_row
        return 0

    # Functions and variables

    cdef int visit_function(self, Cursor *c, const Die *die) noexcept nogil:
        cdef Function *f
        cdef Frame *frame
        cdef uint32_t index = self.nr_functions
        cdef uint64_t number = 0
        if reserve(<void **>&self.functions, &self.functions_cap, <uint64_t>index + 1, sizeof(Function)) < 0:
            return fail_memory(&self.fault)
        f = &self.functions[index]
        memset(f, 0, sizeof(Function))
        f.rel = self.rel(die.offset)
        if self.name_of(die, SLOT_NAME, NO_NAME, &f.name) < 0:
            return -1
        f.type = self.reference(die, SLOT_TYPE)
        f.origin = self.reference(die, SLOT_ORIGIN)
        f.specification = self.reference(die, SLOT_SPECIFICATION)
        f.has_origin = has(die, SLOT_ORIGIN)
        f.declaration = has(die, SLOT_DECLARATION)
        f.external = has(die, SLOT_EXTERNAL)
        f.clang = self.clang
        die_number(die, SLOT_INLINE, &number)
        f.inlined = number != 0
        number = 0
        die_number(die, SLOT_CALLING, &number)
        f.nocall = number == DW_CC_nocall
        if has(die, SLOT_LOW_PC) and not die_address(
            &self.context.sections.c, &self.unit, die.form[SLOT_LOW_PC], die.value[SLOT_LOW_PC], &f.address
        ):
            f.address = 0
        self.nr_functions += 1
        # pahole finishes a function before it numbers it, nested ones first;
        # the order among functions is restored in `close`.
        frame = self.push(IN_FUNCTION, die.tag, die.offset)
        if frame == NULL:
            return -1
        frame.index = index
        frame.type = self.reference(die, SLOT_ANNOTATION)
        return 0 if die.children else self.close()

    cdef int visit_parameter(self, Cursor *c, Frame *frame, const Die *die) noexcept nogil:
        cdef FormalParameter *p
        cdef Function *f
        cdef Row *row
        cdef uint32_t index, owner, mark
        cdef int component
        if frame.kind == IN_SUBROUTINE:
            if frame.nr_children >= BTF_MAX_VLEN - 1:
                return self.fail_at("function type with more parameters than BTF can count", die.offset)
            if reserve(<void **>&self.scratch, &self.scratch_cap, <uint64_t>self.nr_scratch + 1, sizeof(Row)) < 0:
                return fail_memory(&self.fault)
            row = &self.scratch[self.nr_scratch]
            if self.new_name_of(die, &row.name) < 0:
                return -1
            row.type = self.reference(die, SLOT_TYPE)
            row.value = 0
            self.nr_scratch += 1
            frame.nr_children += 1
            return self.skip_children(c, die)

        f = &self.functions[frame.index]
        if not self.all_parameters and self.context.lacks_function(f.name):
            # Most functions of a unit are inline ones of headers, which never come to be listed.
            self.left_out = True
            return self.skip_children(c, die)
        index = self.nr_parameters
        if frame.nr_children >= BTF_MAX_VLEN - 1:
            return self.fail_at("function with more parameters than BTF can count", die.offset)
        if reserve(<void **>&self.parameters, &self.parameters_cap, <uint64_t>index + 1, sizeof(FormalParameter)) < 0:
            return fail_memory(&self.fault)
        p = &self.parameters[index]
        memset(p, 0, sizeof(FormalParameter))
        p.rel = self.rel(die.offset)
        if self.raw_name_of(die, NO_NAME, &p.name) < 0:
            return -1
        p.type = self.reference(die, SLOT_TYPE)
        p.origin = self.reference(die, SLOT_ORIGIN)
        p.has_origin = has(die, SLOT_ORIGIN)
        p.has_constant = has(die, SLOT_CONST_VALUE)
        p.has_location = has(die, SLOT_LOCATION)
        p.register = -1
        p.unit = self.unit_index
        p.index = <uint8_t>frame.nr_children
        p.location.value = die.value[SLOT_LOCATION]
        p.location.length = die.length[SLOT_LOCATION]
        p.location.form = die.form[SLOT_LOCATION]
        self.nr_parameters += 1
        mark = self.mark(p.rel)
        if mark == NO_MARK or self.set_mark(mark, FOUND_PARAMETER, index + 1) < 0:
            return -1
        if f.last_parameter:
            self.parameters[f.last_parameter - 1].next = index + 1
        else:
            f.first_parameter = index + 1
        f.last_parameter = index + 1
        f.nr_parameters += 1
        component = <int>frame.nr_children
        frame.nr_children += 1
        owner = <uint32_t>OWNER_FUNCTION << OWNER_SHIFT | frame.index
        if not self.context.options.decl_tags:
            return self.skip_children(c, die)
        if self.note_gnu_chain(self.reference(die, SLOT_ANNOTATION), owner, component) < 0:
            return -1
        if not die.children:
            return 0
        return self.annotate(die, owner, component)

    cdef int annotate(self, const Die *die, uint32_t owner, int component) noexcept nogil:
        """Go on with the children, of which only annotations of `owner` are of interest."""
        cdef Frame *frame = self.push(IN_ANNOTATED, die.tag, die.offset)
        if frame == NULL:
            return -1
        frame.index = owner
        frame.component = component
        return 0

    cdef int visit_variable(self, Cursor *c, const Die *die, bint top_level) noexcept nogil:
        cdef DataObject *v
        cdef uint32_t mark
        cdef uint32_t index = self.nr_objects
        # A local variable matters only as the declaration that a global one completes.
        if not self.context.options.variables or not (top_level or has(die, SLOT_DECLARATION)):
            return self.skip_children(c, die)
        if reserve(<void **>&self.objects, &self.objects_cap, <uint64_t>index + 1, sizeof(DataObject)) < 0:
            return fail_memory(&self.fault)
        v = &self.objects[index]
        memset(v, 0, sizeof(DataObject))
        v.rel = self.rel(die.offset)
        if self.raw_name_of(die, NO_NAME, &v.name) < 0:
            return -1
        v.type = self.reference(die, SLOT_TYPE)
        v.specification = self.reference(die, SLOT_SPECIFICATION)
        v.has_specification = has(die, SLOT_SPECIFICATION)
        v.external = has(die, SLOT_EXTERNAL)
        v.declaration = has(die, SLOT_DECLARATION)
        v.artificial = has(die, SLOT_ARTIFICIAL)
        v.top_level = top_level
        v.unit = self.unit_index
        if has(die, SLOT_LOCATION):
            v.location.value = die.value[SLOT_LOCATION]
            v.location.length = die.length[SLOT_LOCATION]
            v.location.form = die.form[SLOT_LOCATION]
        self.nr_objects += 1
        mark = self.mark(v.rel)
        if mark == NO_MARK or self.set_mark(mark, FOUND_OBJECT, index + 1) < 0:
            return -1
        if not die.children:
            return 0
        return self.annotate(die, <uint32_t>OWNER_OBJECT << OWNER_SHIFT | index, -1)

    # Annotations

    cdef int is_annotation(self, const Die *die, const char *kind) noexcept nogil:
        """Whether an annotation DIE is of this kind; -1 with `fault`."""
        cdef uint32_t name
        if self.name_of(die, SLOT_NAME, 0, &name) < 0:
            return -1
        return strcmp(<const char *>pool_text(self.context.strings, name).bytes, kind) == 0

    cdef int add_tag(self, uint32_t value, uint32_t owner, int component) noexcept nogil:
        cdef Tag *tag
        if reserve(<void **>&self.tags, &self.tags_cap, <uint64_t>self.nr_tags + 1, sizeof(Tag)) < 0:
            return fail_memory(&self.fault)
        tag = &self.tags[self.nr_tags]
        self.nr_tags += 1
        tag.value = value
        tag.owner = owner
        tag.component = component
        tag.order = self.nr_tags
        return 0

    cdef int note_annotation(self, const Die *die, uint32_t owner, int component) noexcept nogil:
        """Keep a declaration tag for `owner`."""
        cdef uint32_t value
        cdef int is_tag
        if not self.context.options.decl_tags:
            return 0
        is_tag = self.is_annotation(die, "btf_decl_tag")
        if is_tag <= 0:
            return is_tag
        if self.name_of(die, SLOT_CONST_VALUE, 0, &value) < 0:
            return -1
        if value == 0:
            return self.fail_at("declaration tag without a value", die.offset)
        return self.add_tag(value, owner, component)

    cdef int note_gnu_chain(self, uint32_t annotation, uint32_t owner, int component) noexcept nogil:
        """Keep the declaration tags that gcc chains to a DIE by DW_AT_GNU_annotation; `annotation` is the first."""
        cdef Die next
        cdef uint32_t steps = 0
        if not self.context.options.decl_tags:
            return 0
        while annotation:
            steps += 1
            if self.follow(annotation, steps) < 0:
                return -1
            if self.read_rel(annotation, &next) < 0:
                return -1
            if next.tag != DW_TAG_GNU_annotation:
                return 0
            if self.note_annotation(&next, owner, component) < 0:
                return -1
            annotation = self.reference(&next, SLOT_ANNOTATION)
        return 0

    cdef int read_rel(self, uint32_t rel, Die *die) noexcept nogil:
        """Read the DIE at `rel`, which lies in the walked unit."""
        cdef Cursor c
        cdef uint64_t offset = rel - self.shift
        if offset < self.unit.dies or offset >= self.unit.end:
            return self.fail_at("annotation outside of its unit", offset)
        cursor_set(
            &c, self.context.sections.c.view[self.unit.section].data, self.unit.end, offset,
            self.context.sections.c.big,
        )
        if not read_die(&c, &self.abbrevs, self.unit.offset, die):
            return self.fail_at("annotation that is not a DIE", offset)
        return 0

    # Closing

    cdef int close(self) noexcept nogil:
        """The innermost open DIE has no more children: number it."""
        cdef Frame frame = self.frames[self.nr_frames - 1]
        cdef unsigned int kind = frame.kind
        cdef int64_t start
        cdef int status = 0
        if kind == IN_CLASS:
            status = self.close_class(&frame)
        elif kind == IN_ENUMERATION:
            status = self.close_enumeration(&frame)
        elif kind == IN_ARRAY:
            status = self.close_array(&frame)
        elif kind == IN_POINTER:
            status = self.close_pointer(&frame)
        elif kind == IN_FUNCTION:
            status = self.close_function(&frame)
        elif kind == IN_SUBROUTINE:
            if frame.flag:
                # "..." is a last parameter without name and type.
                if reserve(<void **>&self.scratch, &self.scratch_cap, <uint64_t>self.nr_scratch + 1, sizeof(Row)) < 0:
                    return fail_memory(&self.fault)
                memset(&self.scratch[self.nr_scratch], 0, sizeof(Row))
                self.nr_scratch += 1
                frame.nr_children += 1
            start = self.move_rows(frame.first_row)
            if start < 0 or self.add_type(
                frame.mark, frame.tag, frame.size, 0, make_info(BTF_KIND_FUNC_PROTO, frame.nr_children, False),
                frame.type, <uint32_t>start, REF_REL,
            ) == 0:
                return -1
        if status < 0:
            return -1
        self.nr_frames -= 1
        return 0

    cdef int close_function(self, const Frame *frame) noexcept nogil:
        """Put the function in the list that is in pahole's order, and let it be found."""
        if reserve(<void **>&self.order, &self.order_cap, <uint64_t>self.nr_order + 1, sizeof(uint32_t)) < 0:
            return fail_memory(&self.fault)
        self.order[self.nr_order] = frame.index
        self.nr_order += 1
        if self.note_gnu_chain(frame.type, <uint32_t>OWNER_FUNCTION << OWNER_SHIFT | frame.index, -1) < 0:
            return -1
        return self.set_mark(frame.mark, FOUND_FUNCTION, frame.index + 1)

    # Finishing

    cdef int finish(self) noexcept nogil:
        if self.place_bits() < 0 or self.finish_types() < 0:
            return -1
        return self.finish_type_tags()

    cdef uint32_t refers_to(self, const Type *t) noexcept nogil:
        """The local id that a reference means, resolved or not."""
        return t.ref if t.hash == REF_LOCAL else self.resolve(t.ref)

    cdef uint64_t storage_size(self, uint32_t id) noexcept nogil:
        """Bytes of the integer or enumeration behind typedefs and qualifiers; 0: another type."""
        cdef Record *r = self.record
        cdef unsigned int kind
        for _ in range(100):
            kind = info_kind(r.types[id].info) if id else 0
            if (
                kind == BTF_KIND_TYPEDEF or kind == BTF_KIND_CONST or kind == BTF_KIND_VOLATILE
                or kind == BTF_KIND_RESTRICT
            ):
                id = self.refers_to(&r.types[id])
            elif kind == BTF_KIND_INT:
                return self.extras[id].byte_size
            elif kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
                return r.types[id].ref
            else:
                return 0
        return 0

    cdef int place_bits(self) noexcept nogil:
        """Place the bit fields of the older style, now that the sizes of all types are known."""
        cdef const DeferredBits *bits
        cdef Row *row
        cdef uint64_t size
        cdef int64_t offset
        cdef int8_t before
        cdef uint32_t i
        for i in range(self.nr_deferred):
            bits = &self.deferred[i]
            row = &self.record.rows[bits.row]
            size = bits.byte_size if bits.byte_size else self.storage_size(self.resolve(row.type))
            before = bits.bit_offset
            if size == 0:
                before = 0
            elif not self.context.sections.c.big:
                # Little endian compilers count from the high end.
                before = <int8_t>(<int64_t>size * 8 - before - bits.bits)
            offset = <int64_t>bits.byte_offset * 8 + before
            if offset < 0 or offset > 0xFFFFFF:
                return fail(&self.fault, "bit field at an offset that BTF cannot say", SEC_INFO, self.base)
            row.value = <uint32_t>offset | <uint32_t>bits.bits << 24
        return 0

    cdef uint32_t used_name(self, uint32_t name) noexcept nogil:
        """The string's number, which is listed if the output may not have it; FAILED when there is none."""
        if name & (NEW_NAME | RAW_NAME) == RAW_NAME:
            name = self.name_at(name & ~<uint32_t>RAW_NAME)
            if name == FAILED:
                return FAILED
        if name & NEW_NAME:
            name &= ~<uint32_t>NEW_NAME
            if self.use_name(name) < 0:
                return FAILED
        return name

    cdef uint64_t raw_hash(self, const Type *t) noexcept nogil:
        """Hash a struct or enumeration whose names may be raw; never 0."""
        cdef uint64_t key = self.context.strings.key
        cdef uint64_t h = hash_type(info_kind(t.info), t.info, t.name & ~<uint32_t>NEW_NAME, t.ref, 0, key)
        cdef const Row *row = self.record.rows + t.extra
        cdef uint32_t count = info_vlen(t.info)
        if info_kind(t.info) == BTF_KIND_ENUM:
            while count:
                h = mix(mix(h, <uint64_t>(row.name & ~<uint32_t>NEW_NAME) << 32 | row.value, key), row.type, key)
                row += 1
                count -= 1
        else:
            while count:
                h = mix(h, <uint64_t>(row.name & ~<uint32_t>NEW_NAME) << 32 | row.value, key)
                row += 1
                count -= 1
        h |= 1
        prefetch(&self.known[h >> 1 & self.known_mask])  # for `finish_types`
        return h

    cdef Known *find_known(self, uint64_t raw) noexcept nogil:
        """The entry of this hash, or a free one in its place."""
        cdef uint64_t at = raw >> 1 & self.known_mask
        while self.known[at].raw != 0 and self.known[at].raw != raw:
            at = (at + 1) & self.known_mask
        return &self.known[at]

    cdef int learn(self, uint64_t raw, uint64_t hash) noexcept nogil:
        """Note that all names of a struct or enumeration are listed, and its hash with their numbers."""
        cdef Known *old = self.known
        cdef Known *entry
        cdef uint64_t cap = <uint64_t>self.known_mask + 1
        cdef uint64_t i
        if <uint64_t>self.nr_known * 2 >= cap:
            if cap >= <uint64_t>1 << 31:
                return fail_memory(&self.fault)
            self.known = <Known *>calloc(cap * 2, sizeof(Known))
            if self.known == NULL:
                self.known = old
                return fail_memory(&self.fault)
            self.known_mask = <uint32_t>(cap * 2 - 1)
            for i in range(cap):
                if old[i].raw:
                    entry = self.find_known(old[i].raw)
                    entry.raw = old[i].raw
                    entry.hash = old[i].hash
            free(old)
        entry = self.find_known(raw)
        entry.raw = raw
        entry.hash = hash
        self.nr_known += 1
        return 0

    cdef int finish_types(self) noexcept nogil:
        """Resolve references, list new strings in the order of their use, and hash: once over everything."""
        cdef Record *r = self.record
        cdef Type *t
        cdef Row *row
        cdef const Known *known
        cdef uint32_t id, count, target
        cdef uint32_t failed = 0  # all bits set once `used_name` fails
        cdef unsigned int kind
        cdef uint64_t h, raw
        cdef uint64_t key = self.context.strings.key
        # (what the loop asks ten million times a run)
        cdef const uint32_t *first_mark = self.first_mark
        cdef const Mark *marks = self.marks
        for id in range(1, r.nr_types + 1):
            t = &r.types[id]
            kind = info_kind(t.info)
            if t.name == 0 and (kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION) and t.hash != 0:
                # C++: the name stands at the declaration, which may have been finished or not.
                target = self.resolve(<uint32_t>t.hash)
                t.name = r.types[target].name if target else 0
            t.name = self.used_name(t.name)
            failed |= t.name
            count = info_vlen(t.info)
            row = r.rows + t.extra
            raw = self.extras[id].raw
            if raw != 0:
                known = self.find_known(raw)
                if known.raw == raw:
                    t.hash = known.hash
                    if kind != BTF_KIND_ENUM:
                        while count:
                            row.type = find_mark(first_mark, marks, row.type, FOUND_TYPE)
                            row += 1
                            count -= 1
                    continue
            if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
                h = hash_type(kind, t.info, t.name, t.ref, 0, key)
                while count:
                    row.name = self.used_name(row.name)
                    failed |= row.name
                    row.type = find_mark(first_mark, marks, row.type, FOUND_TYPE)
                    h = hash_member(h, row, key)
                    row += 1
                    count -= 1
            elif kind == BTF_KIND_FUNC_PROTO:
                t.ref = t.ref if t.hash == REF_LOCAL else find_mark(first_mark, marks, t.ref, FOUND_TYPE)
                while count:
                    row.name = self.used_name(row.name)
                    failed |= row.name
                    row.type = find_mark(first_mark, marks, row.type, FOUND_TYPE)
                    row += 1
                    count -= 1
                continue
            elif kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
                if kind == BTF_KIND_ENUM64:
                    target = self.resolve(<uint32_t>t.hash)
                    if (
                        target and info_kind(r.types[target].info) == BTF_KIND_INT
                        and r.types[target].extra >> 24 == BTF_INT_SIGNED
                    ):
                        t.info |= <uint32_t>1 << 31
                h = hash_type(kind, t.info, t.name, t.ref, 0, key)
                while count:
                    row.name = self.used_name(row.name)
                    failed |= row.name
                    if row.name == 0:
                        return self.fail_at("enumerator without a name", self.base)
                    h = hash_enumerator(h, row, key)
                    row += 1
                    count -= 1
            else:
                if kind != BTF_KIND_INT and kind != BTF_KIND_FLOAT and kind != BTF_KIND_FWD:
                    t.ref = t.ref if t.hash == REF_LOCAL else find_mark(first_mark, marks, t.ref, FOUND_TYPE)
                h = hash_type(kind, t.info, t.name, t.ref, t.extra, key)
            t.hash = h
            if raw != 0 and not failed & NEW_NAME and self.learn(raw, h) < 0:
                return -1
        if failed & NEW_NAME:
            # (raw names are within whole strings)
            return self.fail_at("one of too many strings that lie within one another", self.base)
        return 0

    cdef int finish_type_tags(self) noexcept nogil:
        """Sort the declaration tags by owner, and list those of types, in the order of the types' ids."""
        cdef Record *r = self.record
        cdef uint32_t i
        cdef const Tag *tag
        if self.nr_tags == 0:
            return 0
        qsort(self.tags, self.nr_tags, sizeof(Tag), by_owner)
        for i in range(self.nr_tags):
            tag = &self.tags[i]
            if tag.owner >> OWNER_SHIFT != OWNER_TYPE:
                break
            # pahole tags structs, unions and typedefs; for classes of C++ it has no word.
            if self.extras[tag.owner].tag == DW_TAG_class_type or self.extras[tag.owner].tag == DW_TAG_interface_type:
                continue
            if reserve(<void **>&r.type_tags, &r.type_tags_cap, <uint64_t>r.nr_type_tags + 1, sizeof(Tag)) < 0:
                return fail_memory(&self.fault)
            r.type_tags[r.nr_type_tags] = tag[0]
            r.nr_type_tags += 1
        return 0

    cdef uint32_t first_tag(self, uint32_t owner) noexcept nogil:
        """Where the tags of this owner start, once the walk is done; `nr_tags` or another's when it has none."""
        cdef uint32_t low = 0
        cdef uint32_t high = self.nr_tags
        cdef uint32_t middle
        while low < high:
            middle = (low + high) // 2
            if self.tags[middle].owner < owner:
                low = middle + 1
            else:
                high = middle
        return low
