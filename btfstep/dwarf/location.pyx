# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False
"""Reads location expressions and lists; see `location.pxd`."""

from libc.stdint cimport uint16_t, uint64_t

from btfstep.dwarf.constants cimport *
from btfstep.dwarf.cursor cimport (
    Cursor, cursor_fail, cursor_left, cursor_set, cursor_skip, cursor_tell, read_u8, read_u16, read_u32, read_u64,
    read_uint, read_uleb, skip_leb,
)
from btfstep.dwarf.sections cimport SEC_LOC, SEC_LOCLISTS, Sections
from btfstep.dwarf.unit cimport Unit, unit_address


cdef struct Operation:
    unsigned int code
    uint64_t number  # the first operand, where it is a number
    uint64_t block  # DW_OP_entry_value: offset of its expression, with `number` its length


cdef bint next_operation(Cursor *c, const Unit *unit, Operation *op) noexcept nogil:
    """Read one operation; False at the end of the expression or when it is malformed (`c.failed`)."""
    cdef unsigned int code
    if cursor_left(c) == 0:
        return False
    code = read_u8(c)
    op.code = code
    op.number = 0
    if DW_OP_lit0 <= code <= DW_OP_reg31:
        pass
    elif DW_OP_breg0 <= code <= DW_OP_breg31 or code == DW_OP_fbreg or code == DW_OP_consts:
        skip_leb(c)
    elif code == DW_OP_addr:
        op.number = read_uint(c, unit.address_size)
    elif (
        code == DW_OP_constu or code == DW_OP_plus_uconst or code == DW_OP_regx or code == DW_OP_piece
        or code == DW_OP_addrx or code == DW_OP_constx or code == DW_OP_convert or code == DW_OP_reinterpret
        or code == DW_OP_GNU_convert or code == DW_OP_GNU_reinterpret or code == DW_OP_GNU_addr_index
        or code == DW_OP_GNU_const_index
    ):
        op.number = read_uleb(c)
    elif code == 0x08 or code == 0x09 or code == 0x15 or code == 0x94 or code == 0x95:
        read_u8(c)  # const1u, const1s, pick, deref_size, xderef_size
    elif code == 0x0A or code == 0x0B or code == 0x28 or code == 0x2F or code == 0x98:
        read_u16(c)  # const2u, const2s, bra, skip, call2
    elif code == 0x0C or code == 0x0D or code == 0x99 or code == DW_OP_GNU_parameter_ref:
        read_u32(c)  # const4u, const4s, call4
    elif code == 0x0E or code == 0x0F:
        read_u64(c)  # const8u, const8s
    elif code == DW_OP_bregx or code == DW_OP_bit_piece or code == DW_OP_regval_type or code == DW_OP_GNU_regval_type:
        skip_leb(c)
        skip_leb(c)
    elif code == DW_OP_entry_value or code == DW_OP_GNU_entry_value or code == DW_OP_implicit_value:
        op.number = read_uleb(c)
        op.block = cursor_tell(c)
        cursor_skip(c, op.number)
    elif code == DW_OP_implicit_pointer or code == DW_OP_GNU_implicit_pointer:
        cursor_skip(c, unit.address_size if unit.version < 3 else unit.offset_size)
        skip_leb(c)
    elif code == 0x9A or code == DW_OP_GNU_variable_value:  # call_ref
        cursor_skip(c, unit.address_size if unit.version < 3 else unit.offset_size)
    elif code == DW_OP_const_type or code == DW_OP_GNU_const_type:
        skip_leb(c)
        cursor_skip(c, read_u8(c))
    elif (
        code == DW_OP_deref_type or code == DW_OP_GNU_deref_type or code == DW_OP_xderef_type
    ):
        read_u8(c)
        skip_leb(c)
    elif (
        code == 0x06 or 0x12 <= code <= 0x14 or 0x16 <= code <= 0x27 or 0x29 <= code <= 0x2E
        or 0x96 <= code <= 0x97 or code == 0x9B or code == 0x9C or code == DW_OP_stack_value
        or code == 0xE0 or code == 0xF0
    ):
        pass  # deref, stack operations, arithmetic, comparisons, nop, TLS, CFA
    else:
        cursor_fail(c)
    return not c.failed


cdef inline bint is_block(uint16_t form) noexcept nogil:
    return (
        form == DW_FORM_exprloc or form == DW_FORM_block1 or form == DW_FORM_block2 or form == DW_FORM_block4
        or form == DW_FORM_block
    )


cdef inline bint is_register(unsigned int code) noexcept nogil:
    return DW_OP_reg0 <= code <= DW_OP_reg31


cdef inline bint is_constant(unsigned int code) noexcept nogil:
    return DW_OP_lit0 <= code <= DW_OP_lit31 or code == DW_OP_constu or code == DW_OP_consts


cdef bint variable_address(
    const Sections *sections, const Unit *unit, const Location *location, uint64_t *address
) noexcept nogil:
    """Whether the variable lies at one fixed address, and which.

    A lone DW_OP_addr or DW_OP_addrx says so, DW_OP_plus_uconst may follow it;
    whatever else follows is passed over, as pahole does.
    """
    cdef Cursor c
    cdef Operation first, op
    cdef unsigned int count = 1
    cdef uint64_t plus = 0
    cdef bint has_plus = False
    if not is_block(location.form):
        return False
    cursor_set(
        &c, sections.view[unit.section].data, location.value + location.length, location.value, sections.big
    )
    if not next_operation(&c, unit, &first):
        return False
    while next_operation(&c, unit, &op):
        count += 1
        if count == 2 and op.code == DW_OP_plus_uconst:
            has_plus, plus = True, op.number
    if c.failed:
        return False
    if first.code == DW_OP_addr:
        address[0] = first.number
    elif first.code == DW_OP_addrx:
        if not unit_address(sections, unit, first.number, address):
            return False
    else:
        return False
    if has_plus and count == 2:
        address[0] += plus
    return True


cdef bint block_constant(
    const Sections *sections, const Location *location, int section, uint64_t *value
) noexcept nogil:
    """The offset that a member's location block adds (DW_OP_plus_uconst, DW_OP_constu), as older compilers write it."""
    cdef Cursor c
    cdef unsigned int code
    if not is_block(location.form):
        return False
    cursor_set(&c, sections.view[section].data, location.value + location.length, location.value, sections.big)
    code = read_u8(&c)
    if code != DW_OP_plus_uconst and code != DW_OP_constu:
        return False
    value[0] = read_uleb(&c)
    return not c.failed


cdef void note_register(ParameterPlace *place, unsigned int code) noexcept nogil:
    if place.register < 0:
        place.register = <int>code


cdef bint note_expression(
    const Sections *sections, const Unit *unit, int section, uint64_t start, uint64_t length, bint first,
    uint16_t byte_size, bint two_registers, ParameterPlace *place
) noexcept nogil:
    """Take from one expression what it says; False when it is malformed.

    `first`: it is the first of its list, the only one that holds on entry.
    """
    cdef Cursor c, inner
    cdef Operation op, head, entry, more
    cdef unsigned int count = 0
    cdef bint stack_value = False  # somewhere behind the head
    cdef bint ends_in_stack_value = False
    cdef uint64_t at = 0  # offset in the aggregate
    cdef uint64_t size
    cdef bint in_pieces
    cursor_set(&c, sections.view[section].data, start + length, start, sections.big)
    while next_operation(&c, unit, &op):
        if count == 0:
            head = op
        elif op.code == DW_OP_stack_value:
            stack_value = True
        ends_in_stack_value = op.code == DW_OP_stack_value
        count += 1
    if c.failed:
        return False
    if count == 0:
        return True
    if count == 2 and ends_in_stack_value:
        count = 1
    if count == 1:
        if is_register(head.code):
            if first:
                note_register(place, head.code)
        elif DW_OP_breg0 <= head.code <= DW_OP_breg31:
            # The value of a register (plus a constant): it came in that register.
            if first and ends_in_stack_value:
                note_register(place, head.code - DW_OP_breg0 + DW_OP_reg0)
        elif head.code == DW_OP_fbreg:
            if first:
                place.stack = True
        elif is_constant(head.code):
            if first:
                place.constant = True
        elif head.code == DW_OP_entry_value or head.code == DW_OP_GNU_entry_value:
            cursor_set(&inner, sections.view[section].data, head.block + head.number, head.block, sections.big)
            if next_operation(&inner, unit, &entry) and not next_operation(&inner, unit, &more):
                if not inner.failed and is_register(entry.code):
                    note_register(place, entry.code)
        return True

    if is_constant(head.code):
        if first:
            place.constant = True
        return True
    in_pieces = byte_size > unit.address_size and two_registers
    if not in_pieces:
        if first and is_register(head.code):
            note_register(place, head.code)
        elif first and stack_value and DW_OP_breg0 <= head.code <= DW_OP_breg31:
            note_register(place, head.code - DW_OP_breg0 + DW_OP_reg0)
        return True
    cursor_set(&c, sections.view[section].data, start + length, start, sections.big)
    count = 0
    while next_operation(&c, unit, &op):
        if op.code == DW_OP_piece:
            size = op.number
            if count == 0:
                at = size  # a piece without a location: those bytes do not arrive
            else:
                if at < unit.address_size:
                    place.first_pieces |= <uint64_t>1 << at
                elif at - unit.address_size < 64:
                    place.second_pieces |= <uint64_t>1 << (at - unit.address_size)
                # Kept small: nothing past the second register is looked at.
                at = at + size if size < 1 << 16 and at < 1 << 16 else 1 << 17
        elif is_register(op.code) and (at < unit.address_size or place.register < 0):
            note_register(place, op.code)
        count += 1
    return True


cdef void parameter_place(
    const Sections *sections, const Unit *unit, const Location *location, uint16_t byte_size, bint two_registers,
    ParameterPlace *place
) noexcept nogil:
    """Say how a parameter of `byte_size` bytes is passed, from its location attribute.

    `two_registers`: the machine passes aggregates in up to two registers.  A
    list that turns out malformed counts as far as it was read.
    """
    cdef Cursor c
    cdef uint64_t offset, length
    cdef int section
    cdef unsigned int kind
    cdef uint64_t begin, end, ones
    cdef bint first = True
    cdef bint wide = byte_size > unit.address_size
    place.register = -1
    place.constant = place.stack = False
    place.first_pieces = place.second_pieces = place.work = 0
    if is_block(location.form):
        note_expression(
            sections, unit, unit.section, location.value, location.length, True, byte_size, two_registers, place
        )
        return
    offset = location.value
    section = SEC_LOC if unit.version < 5 else SEC_LOCLISTS
    if location.form == DW_FORM_loclistx:
        length = sections.view[section].size
        if unit.loclists_base > length or offset >= (length - unit.loclists_base) // unit.offset_size:
            return
        cursor_set(
            &c, sections.view[section].data, length, unit.loclists_base + offset * unit.offset_size, sections.big
        )
        offset = unit.loclists_base + read_uint(&c, unit.offset_size)
    elif not (
        location.form == DW_FORM_sec_offset
        or (unit.version < 4 and (location.form == DW_FORM_data4 or location.form == DW_FORM_data8))
    ):
        return
    cursor_set(&c, sections.view[section].data, sections.view[section].size, offset, sections.big)
    ones = ~<uint64_t>0 >> (64 - 8 * unit.address_size)
    while not c.failed:
        place.work += 2
        if unit.version < 5:
            begin = read_uint(&c, unit.address_size)
            end = read_uint(&c, unit.address_size)
            if begin == 0 and end == 0:
                return
            if begin == ones:
                continue  # a new base address
            length = read_u16(&c)
        else:
            kind = read_u8(&c)
            if kind == DW_LLE_end_of_list:
                return
            if kind == DW_LLE_base_addressx:
                skip_leb(&c)
                continue
            if kind == DW_LLE_base_address:
                cursor_skip(&c, unit.address_size)
                continue
            if kind == DW_LLE_startx_endx or kind == DW_LLE_startx_length or kind == DW_LLE_offset_pair:
                skip_leb(&c)
                skip_leb(&c)
            elif kind == DW_LLE_start_end:
                cursor_skip(&c, 2 * unit.address_size)
            elif kind == DW_LLE_start_length:
                cursor_skip(&c, unit.address_size)
                skip_leb(&c)
            elif kind != DW_LLE_default_location:
                return
            length = read_uleb(&c)
        begin = cursor_tell(&c)
        cursor_skip(&c, length)
        if c.failed:
            return
        place.work += length
        if not note_expression(sections, unit, section, begin, length, first, byte_size, two_registers, place):
            return
        # All that later entries can add to a plain register is pieces of an aggregate.
        if place.register >= 0 and not (wide and two_registers):
            return
        first = False
