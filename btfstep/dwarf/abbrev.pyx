# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False
# (no Python sequence is indexed here; C arrays are indexed below their counts)
"""Compiles abbreviation tables; `abbrev.pxd` says what they become."""

from libc.stdlib cimport free, qsort, realloc

from btfstep.dwarf.constants cimport *
from btfstep.dwarf.cursor cimport Cursor, cursor_fail, cursor_set, cursor_tell, read_sleb, read_u8, read_uleb
from btfstep.dwarf.sections cimport SEC_ABBREV, SEC_INFO, SEC_TYPES, Fault, Sections, fail, fail_memory


cdef enum:
    # What compilers write stays far below this; a table past it is an attack on memory.
    MAX_STEPS = 1 << 24
    # Units may share a table, and thousands of small ones that take turns with
    # a few large tables would have them compiled for each.  Real files come to
    # about the size of the section.
    MAX_RELOADS = 16
    FREE_WORK = 1 << 26  # bytes


cdef unsigned int attribute_slot(uint64_t attribute) noexcept nogil:
    if attribute == DW_AT_name:
        return SLOT_NAME
    if attribute == DW_AT_type:
        return SLOT_TYPE
    if attribute == DW_AT_sibling:
        return SLOT_SIBLING
    if attribute == DW_AT_byte_size:
        return SLOT_BYTE_SIZE
    if attribute == DW_AT_bit_size:
        return SLOT_BIT_SIZE
    if attribute == DW_AT_bit_offset:
        return SLOT_BIT_OFFSET
    if attribute == DW_AT_data_bit_offset:
        return SLOT_DATA_BIT_OFFSET
    if attribute == DW_AT_data_member_location:
        return SLOT_MEMBER_LOCATION
    if attribute == DW_AT_declaration:
        return SLOT_DECLARATION
    if attribute == DW_AT_encoding:
        return SLOT_ENCODING
    if attribute == DW_AT_const_value:
        return SLOT_CONST_VALUE
    if attribute == DW_AT_upper_bound:
        return SLOT_UPPER_BOUND
    if attribute == DW_AT_count:
        return SLOT_COUNT
    if attribute == DW_AT_location:
        return SLOT_LOCATION
    if attribute == DW_AT_abstract_origin:
        return SLOT_ORIGIN
    if attribute == DW_AT_specification:
        return SLOT_SPECIFICATION
    if attribute == DW_AT_external:
        return SLOT_EXTERNAL
    if attribute == DW_AT_artificial:
        return SLOT_ARTIFICIAL
    if attribute == DW_AT_inline:
        return SLOT_INLINE
    if attribute == DW_AT_low_pc:
        return SLOT_LOW_PC
    if attribute == DW_AT_calling_convention:
        return SLOT_CALLING
    if attribute == DW_AT_language:
        return SLOT_LANGUAGE
    if attribute == DW_AT_producer:
        return SLOT_PRODUCER
    if attribute == DW_AT_str_offsets_base:
        return SLOT_STR_OFFSETS_BASE
    if attribute == DW_AT_addr_base:
        return SLOT_ADDR_BASE
    if attribute == DW_AT_loclists_base:
        return SLOT_LOCLISTS_BASE
    if attribute == DW_AT_GNU_annotation:
        return SLOT_ANNOTATION
    if attribute == DW_AT_dwo_name or attribute == DW_AT_GNU_dwo_name:
        return SLOT_DWO_NAME
    return SLOTS


cdef bint tag_is_read(uint64_t tag) noexcept nogil:
    """Whether anything but the sibling of such a DIE is looked at.

    What fills function bodies (calls, inlined functions, blocks) is not.
    """
    return (
        tag == DW_TAG_member
        or tag == DW_TAG_formal_parameter
        or tag == DW_TAG_enumerator
        or tag == DW_TAG_variable
        or tag == DW_TAG_subprogram
        or tag == DW_TAG_subrange_type
        or tag == DW_TAG_pointer_type
        or tag == DW_TAG_typedef
        or tag == DW_TAG_structure_type
        or tag == DW_TAG_union_type
        or tag == DW_TAG_array_type
        or tag == DW_TAG_base_type
        or tag == DW_TAG_const_type
        or tag == DW_TAG_volatile_type
        or tag == DW_TAG_restrict_type
        or tag == DW_TAG_enumeration_type
        or tag == DW_TAG_subroutine_type
        or tag == DW_TAG_compile_unit
        or tag == DW_TAG_partial_unit
        or tag == DW_TAG_type_unit
        or tag == DW_TAG_skeleton_unit
        or tag == DW_TAG_LLVM_annotation
        or tag == DW_TAG_GNU_annotation
        or tag == DW_TAG_class_type
        or tag == DW_TAG_interface_type
        or tag == DW_TAG_reference_type
        or tag == DW_TAG_rvalue_reference_type
        or tag == DW_TAG_string_type
        or tag == DW_TAG_ptr_to_member_type
        or tag == DW_TAG_atomic_type
        or tag == DW_TAG_unspecified_type
        or tag == DW_TAG_namespace
    )


cdef bint compile_form(
    Step *step, uint64_t form, bint keep, uint8_t version, uint8_t address_size, uint8_t offset_size
) noexcept nogil:
    """Fill in how an attribute of `form` is read or skipped; False: no such form."""
    cdef unsigned int fixed = 0  # bytes
    cdef unsigned int action = ACT_SKIP
    cdef unsigned int skip = ACT_SKIP
    step.form = <uint16_t>form
    step.arg = 0
    if form == DW_FORM_data1 or form == DW_FORM_flag or form == DW_FORM_strx1 or form == DW_FORM_addrx1:
        fixed = 1
    elif form == DW_FORM_data2 or form == DW_FORM_strx2 or form == DW_FORM_addrx2:
        fixed = 2
    elif form == DW_FORM_strx3 or form == DW_FORM_addrx3:
        fixed = 3
    elif form == DW_FORM_data4 or form == DW_FORM_strx4 or form == DW_FORM_addrx4 or form == DW_FORM_ref_sup4:
        fixed = 4
    elif form == DW_FORM_data8 or form == DW_FORM_ref_sig8 or form == DW_FORM_ref_sup8:
        fixed = 8
    elif form == DW_FORM_addr:
        fixed = address_size
    elif (
        form == DW_FORM_strp or form == DW_FORM_line_strp or form == DW_FORM_sec_offset
        or form == DW_FORM_strp_sup or form == DW_FORM_GNU_ref_alt or form == DW_FORM_GNU_strp_alt
    ):
        fixed = offset_size
    elif form == DW_FORM_ref_addr:
        # DWARF 2 gave it the size of an address.
        fixed = address_size if version < 3 else offset_size
    elif form == DW_FORM_ref1:
        action, step.arg = ACT_REF1, 1
    elif form == DW_FORM_ref2:
        action, step.arg = ACT_REF2, 2
    elif form == DW_FORM_ref4:
        action, step.arg = ACT_REF4, 4
    elif form == DW_FORM_ref8:
        action, step.arg = ACT_REF8, 8
    elif form == DW_FORM_ref_udata:
        action, skip = ACT_REF_ULEB, ACT_SKIP_LEB
    elif (
        form == DW_FORM_udata or form == DW_FORM_strx or form == DW_FORM_addrx or form == DW_FORM_loclistx
        or form == DW_FORM_rnglistx or form == DW_FORM_GNU_addr_index or form == DW_FORM_GNU_str_index
    ):
        action, skip = ACT_ULEB, ACT_SKIP_LEB
    elif form == DW_FORM_sdata:
        action, skip = ACT_SLEB, ACT_SKIP_LEB
    elif form == DW_FORM_string:
        action, skip = ACT_STRING, ACT_SKIP_STRING
    elif form == DW_FORM_block1:
        action, skip = ACT_BLOCK1, ACT_SKIP_BLOCK1
    elif form == DW_FORM_block2:
        action, skip = ACT_BLOCK2, ACT_SKIP_BLOCK2
    elif form == DW_FORM_block4:
        action, skip = ACT_BLOCK4, ACT_SKIP_BLOCK4
    elif form == DW_FORM_block or form == DW_FORM_exprloc:
        action, skip = ACT_BLOCK, ACT_SKIP_BLOCK
    elif form == DW_FORM_flag_present:
        action, step.arg = ACT_CONST, 1 if keep else 0
    elif form == DW_FORM_implicit_const:
        action = ACT_CONST  # the caller reads the constant, which follows in the table
    elif form == DW_FORM_data16:
        # Nothing that is kept has 16 bytes: it counts as absent, see `abbrev_load`.
        step.arg = 16
    elif form == DW_FORM_indirect:
        action = skip = ACT_INDIRECT
    else:
        return False
    if fixed:
        step.arg = fixed
        if fixed == 1:
            action = ACT_U1
        elif fixed == 2:
            action = ACT_U2
        elif fixed == 3:
            action = ACT_U3
        elif fixed == 4:
            action = ACT_U4
        else:
            action = ACT_U8
    step.action = action if keep else skip
    return True


cdef void read_indirect(
    Cursor *c, const AbbrevTable *table, uint64_t unit, unsigned int slot, Die *die
) noexcept nogil:
    """DW_FORM_indirect: the form stands in the DIE, before the value."""
    cdef Step step
    cdef uint64_t form = read_uleb(c)
    if (
        form == DW_FORM_indirect
        or form == DW_FORM_implicit_const
        or not compile_form(
            &step, form, slot != SLOTS, table.version, table.address_size, table.offset_size
        )
    ):
        cursor_fail(c)
        return
    step.slot = <uint8_t>slot
    if slot != SLOTS:
        die.value[slot] = 0
        die.form[slot] = 0
    read_step(c, table, unit, &step, die)


cdef void abbrev_free(AbbrevTable *table) noexcept nogil:
    free(table.items)
    free(table.steps)
    table.items = NULL
    table.steps = NULL
    table.items_cap = table.steps_cap = 0
    table.nr_items = table.nr_steps = 0
    table.offset_size = 0


cdef int by_code(const void *a, const void *b) noexcept nogil:
    cdef uint64_t x = (<const Abbrev *>a).code
    cdef uint64_t y = (<const Abbrev *>b).code
    return (x > y) - (x < y)


cdef const Abbrev *abbrev_find_sparse(const AbbrevTable *table, uint64_t code) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = table.nr_items
    cdef uint32_t mid
    while low < high:
        mid = (low + high) // 2
        if table.items[mid].code < code:
            low = mid + 1
        else:
            high = mid
    if low < table.nr_items and table.items[low].code == code:
        return &table.items[low]
    return NULL


cdef int grow_items(AbbrevTable *table) noexcept nogil:
    cdef uint32_t cap = table.items_cap * 2 if table.items_cap else 256
    cdef void *items = realloc(table.items, <size_t>cap * sizeof(Abbrev))
    if items == NULL:
        return -1
    table.items = <Abbrev *>items
    table.items_cap = cap
    return 0


cdef int grow_steps(AbbrevTable *table) noexcept nogil:
    cdef uint32_t cap = table.steps_cap * 2 if table.steps_cap else 2048
    cdef void *steps = realloc(table.steps, <size_t>cap * sizeof(Step))
    if steps == NULL:
        return -1
    table.steps = <Step *>steps
    table.steps_cap = cap
    return 0


cdef unsigned int shape_of(const Abbrev *abbrev) noexcept nogil:
    """The shape that the tag and the attributes that are kept allow, whatever their forms."""
    cdef uint32_t tag = abbrev.tag
    cdef uint32_t name = <uint32_t>1 << SLOT_NAME
    cdef uint32_t type = <uint32_t>1 << SLOT_TYPE
    cdef uint32_t location = <uint32_t>1 << SLOT_MEMBER_LOCATION
    cdef uint32_t value = <uint32_t>1 << SLOT_CONST_VALUE
    cdef uint32_t frame = name | type | <uint32_t>1 << SLOT_BYTE_SIZE | <uint32_t>1 << SLOT_SIBLING
    if abbrev.children:
        if (tag == DW_TAG_structure_type or tag == DW_TAG_union_type) and not abbrev.mask & ~(frame & ~type):
            return SHAPE_FRAME
        if tag == DW_TAG_enumeration_type and not abbrev.mask & ~(frame | <uint32_t>1 << SLOT_ENCODING):
            return SHAPE_FRAME
        if (tag == DW_TAG_subroutine_type or tag == DW_TAG_array_type) and not abbrev.mask & ~(frame & ~name):
            return SHAPE_FRAME
        return SHAPE_NONE
    if tag == DW_TAG_member and abbrev.mask & location and not abbrev.mask & ~(name | type | location):
        return SHAPE_MEMBER
    if tag == DW_TAG_enumerator and abbrev.mask == name | value:
        return SHAPE_ENUMERATOR
    if tag == DW_TAG_formal_parameter and not abbrev.mask & ~(name | type):
        return SHAPE_PARAMETER
    if tag == DW_TAG_typedef and not abbrev.mask & ~(name | type):
        return SHAPE_REFERENCE
    if tag == DW_TAG_pointer_type and not abbrev.mask & ~(type | <uint32_t>1 << SLOT_BYTE_SIZE):
        return SHAPE_REFERENCE
    if (
        (tag == DW_TAG_const_type or tag == DW_TAG_volatile_type or tag == DW_TAG_restrict_type)
        and not abbrev.mask & ~type
    ):
        return SHAPE_REFERENCE
    return SHAPE_NONE


cdef void find_shape(Abbrev *abbrev, const Step *steps) noexcept nogil:
    """Fill in `plain` of an abbreviation whose steps are known."""
    cdef Plain *plain = &abbrev.plain
    cdef const Step *step
    cdef uint64_t size = 0
    cdef uint64_t bytes
    cdef uint32_t i
    plain.shape = SHAPE_NONE
    plain.inline_name = False
    plain.name = plain.type = plain.number = NOWHERE
    plain.number_size = 0
    plain.constant = 0
    for i in range(abbrev.nr_steps):
        step = &steps[i]
        if step.action == ACT_SKIP:
            bytes = <uint64_t>step.arg
        elif step.action == ACT_U1:
            bytes = 1
        elif step.action == ACT_U2:
            bytes = 2
        elif step.action == ACT_U4 or step.action == ACT_REF4:
            bytes = 4
        elif step.action == ACT_U8:
            bytes = 8
        elif step.action == ACT_CONST or step.action == ACT_STRING:
            bytes = 0
        else:
            return
        if step.slot == SLOT_NAME:
            if step.action == ACT_STRING and i == 0:
                plain.inline_name = True
            elif step.form == DW_FORM_strp and bytes == 4:
                plain.name = <uint16_t>size
            else:
                return
        elif step.slot == SLOT_TYPE:
            if step.action != ACT_REF4:
                return
            plain.type = <uint16_t>size
        elif step.slot == SLOT_MEMBER_LOCATION or step.slot == SLOT_CONST_VALUE or step.slot == SLOT_BYTE_SIZE:
            if (
                step.form != DW_FORM_data1 and step.form != DW_FORM_data2 and step.form != DW_FORM_data4
                and step.form != DW_FORM_data8 and step.form != DW_FORM_implicit_const
            ):
                return
            plain.number = <uint16_t>size
            plain.number_size = <uint8_t>bytes
            plain.constant = <uint64_t>step.arg if step.action == ACT_CONST else 0
        elif step.action == ACT_STRING:
            return
        size += bytes
        if size >= NOWHERE:
            return
    plain.size = <uint16_t>size
    plain.shape = <uint8_t>shape_of(abbrev)


cdef int abbrev_load(
    AbbrevTable *table, const Sections *sections, uint64_t offset,
    uint8_t version, uint8_t address_size, uint8_t offset_size, Fault *fault,
) noexcept nogil:
    """Compile the table at `offset` of .debug_abbrev, unless it is the one at hand."""
    cdef Cursor c
    cdef Abbrev *abbrev
    cdef Step *step
    cdef uint64_t attribute, form, at
    cdef unsigned int slot
    cdef bint read_all, keep

    if (
        table.offset_size == offset_size and table.offset == offset
        and table.version == version and table.address_size == address_size
    ):
        return 0
    if table.work > FREE_WORK + MAX_RELOADS * (
        sections.view[SEC_ABBREV].size + sections.view[SEC_INFO].size + sections.view[SEC_TYPES].size
    ):
        return fail(fault, "abbreviation tables are shared by too many units, in turns", SEC_ABBREV, offset)
    table.offset_size = 0
    table.nr_items = table.nr_steps = 0
    table.dense = True
    table.version = version
    table.address_size = address_size
    cursor_set(&c, sections.view[SEC_ABBREV].data, sections.view[SEC_ABBREV].size, offset, sections.big)
    while True:
        at = cursor_tell(&c)
        if table.nr_items == table.items_cap and grow_items(table) < 0:
            return fail_memory(fault)
        abbrev = &table.items[table.nr_items]
        abbrev.code = read_uleb(&c)
        if abbrev.code == 0:
            break
        attribute = read_uleb(&c)
        abbrev.tag = <uint32_t>attribute if attribute <= 0xFFFF else 0xFFFF
        if abbrev.tag == 0:
            # 0 stands for the end of a list of children: no DIE may claim it.
            abbrev.tag = 0xFFFF
        read_all = tag_is_read(abbrev.tag)
        abbrev.children = read_u8(&c) != 0
        abbrev.mask = 0
        abbrev.first_step = table.nr_steps
        while True:
            at = cursor_tell(&c)
            attribute = read_uleb(&c)
            form = read_uleb(&c)
            if attribute == 0 and form == 0:
                break
            if table.nr_steps == table.steps_cap and grow_steps(table) < 0:
                return fail_memory(fault)
            if table.nr_steps >= MAX_STEPS:
                return fail(fault, "too many attributes in one abbreviation table", SEC_ABBREV, at)
            slot = attribute_slot(attribute)
            keep = slot != SLOTS and (read_all or slot == SLOT_SIBLING) and form != DW_FORM_data16
            if not keep or abbrev.mask & (<uint32_t>1 << slot):
                # An attribute given twice: the first one counts.
                keep, slot = False, SLOTS
            step = &table.steps[table.nr_steps]
            step.slot = <uint8_t>slot
            if not compile_form(step, form, keep, version, address_size, offset_size):
                return fail(fault, "unknown attribute form", SEC_ABBREV, at)
            if form == DW_FORM_implicit_const:
                step.arg = read_sleb(&c)
                if not keep:
                    continue
            if keep:
                if (
                    form == DW_FORM_GNU_ref_alt or form == DW_FORM_GNU_strp_alt or form == DW_FORM_strp_sup
                    or form == DW_FORM_ref_sup4 or form == DW_FORM_ref_sup8
                ):
                    return fail(
                        fault, "refers to a supplementary file (dwz -m), which is not supported", SEC_ABBREV, at
                    )
                abbrev.mask |= <uint32_t>1 << slot
            elif step.action == ACT_SKIP:
                if step.arg == 0:
                    continue
                if table.nr_steps > abbrev.first_step and (step - 1).action == ACT_SKIP:
                    (step - 1).arg += step.arg
                    continue
            table.nr_steps += 1
            if c.failed:
                break
        if c.failed:
            break
        abbrev.nr_steps = table.nr_steps - abbrev.first_step
        find_shape(abbrev, table.steps + abbrev.first_step)
        table.nr_items += 1
        if abbrev.code != table.nr_items:
            table.dense = False
    if c.failed:
        return fail(fault, "abbreviation table runs past the end of the section", SEC_ABBREV, at)
    table.work += cursor_tell(&c) - offset
    if not table.dense:
        qsort(table.items, table.nr_items, sizeof(Abbrev), by_code)
    table.offset = offset
    table.offset_size = offset_size
    return 0
