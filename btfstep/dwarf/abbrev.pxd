# SPDX-License-Identifier: GPL-2.0-only
"""Abbreviations (DWARF 5, section 7.5.3), compiled to short programs that read DIEs.

Each abbreviation becomes a list of steps: store an attribute that btfstep
wants into its slot, or skip.  Neighbouring fixed-size attributes that nobody
wants fuse into one skip, so a DIE costs a few nanoseconds for each attribute
that is kept and next to nothing for the rest.  Which slots a DIE fills is a
property of its abbreviation: `Die.mask` is copied, never built.

An ``AbbrevTable`` belongs to one worker, is filled for one unit, and is
reused for the next; `read_die` runs without the GIL and allocates nothing.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from btfstep.dwarf.cursor cimport (
    Cursor, cursor_fail, cursor_skip, cursor_tell, read_sleb, read_string, read_u8, read_u16, read_u24,
    read_u32, read_u64, read_uleb, skip_leb,
)
from btfstep.dwarf.sections cimport Fault, Sections

# One slot for each attribute that is kept.
cdef enum:  # Slot
    SLOT_SIBLING
    SLOT_NAME
    SLOT_TYPE
    SLOT_BYTE_SIZE
    SLOT_BIT_SIZE
    SLOT_BIT_OFFSET
    SLOT_DATA_BIT_OFFSET
    SLOT_MEMBER_LOCATION
    SLOT_DECLARATION
    SLOT_ENCODING
    SLOT_CONST_VALUE
    SLOT_UPPER_BOUND
    SLOT_COUNT
    SLOT_LOCATION
    SLOT_ORIGIN
    SLOT_SPECIFICATION
    SLOT_EXTERNAL
    SLOT_ARTIFICIAL
    SLOT_INLINE
    SLOT_LOW_PC
    SLOT_CALLING
    SLOT_LANGUAGE
    SLOT_PRODUCER
    SLOT_STR_OFFSETS_BASE
    SLOT_ADDR_BASE
    SLOT_LOCLISTS_BASE
    SLOT_ANNOTATION
    SLOT_DWO_NAME
    SLOTS

cdef enum:  # Action
    ACT_SKIP
    ACT_SKIP_LEB
    ACT_SKIP_STRING
    ACT_SKIP_BLOCK1
    ACT_SKIP_BLOCK2
    ACT_SKIP_BLOCK4
    ACT_SKIP_BLOCK
    ACT_U1
    ACT_U2
    ACT_U3
    ACT_U4
    ACT_U8
    ACT_ULEB
    ACT_SLEB
    ACT_CONST
    ACT_STRING
    ACT_BLOCK1
    ACT_BLOCK2
    ACT_BLOCK4
    ACT_BLOCK
    ACT_REF1
    ACT_REF2
    ACT_REF4
    ACT_REF8
    ACT_REF_ULEB
    ACT_INDIRECT


cdef enum:  # Shape
    # Most DIEs of a kernel are of a few kinds, whose attributes compilers give
    # sizes that the abbreviation fixes: those are read from known places, with
    # one check, in a third of the time that steps take.
    SHAPE_NONE  # read by steps
    SHAPE_MEMBER  # a name, a type, an offset in bytes
    SHAPE_ENUMERATOR  # a name and a value
    SHAPE_REFERENCE  # what refers to one type: a type and, typedefs, a name
    SHAPE_PARAMETER  # a name and a type
    SHAPE_FRAME  # a struct, union, enumeration, array or function type, with children: a name, a type, a size in bytes
    NOWHERE = 0xFFFF


cdef struct Plain:
    # Where the attributes of such a DIE are, from the first byte behind the
    # code or, where the name is inline and comes first, behind its NUL.
    uint8_t shape
    bint inline_name
    uint8_t number_size  # bytes of the offset, value or size; 0: it is `constant`
    uint16_t size  # bytes in all
    uint16_t name  # offset in .debug_str, 4 bytes; or NOWHERE
    uint16_t type  # from the unit's start, 4 bytes; or NOWHERE
    uint16_t number
    uint64_t constant


cdef struct Step:
    int64_t arg  # bytes to skip, or the constant
    uint16_t form
    uint8_t action
    uint8_t slot  # SLOTS: not kept


cdef struct Abbrev:
    uint64_t code
    uint32_t tag
    uint32_t mask  # bit 1 << slot for each slot that this abbreviation fills
    uint32_t first_step
    uint32_t nr_steps
    Plain plain
    bint children


cdef struct AbbrevTable:
    Abbrev *items
    uint32_t nr_items
    uint32_t items_cap
    Step *steps
    uint32_t nr_steps
    uint32_t steps_cap
    bint dense  # codes are 1, 2, 3, ... in order, as compilers write them
    # what the table was compiled for; offset_size 0: nothing yet
    uint64_t offset
    uint8_t version
    uint8_t address_size
    uint8_t offset_size
    uint64_t work  # bytes of tables compiled so far


cdef struct Die:
    uint64_t offset  # in its section
    uint32_t tag  # 0: the entry that ends a list of children
    uint32_t mask
    bint children
    # A slot's value by the class of its form: the number, the string's offset
    # (in .debug_str and so on by form, in this section for DW_FORM_string), the
    # DIE's offset in this section, or the block's offset with `length`.
    uint64_t value[SLOTS]
    uint64_t length[SLOTS]
    uint16_t form[SLOTS]


cdef void abbrev_free(AbbrevTable *table) noexcept nogil

cdef int abbrev_load(
    AbbrevTable *table, const Sections *sections, uint64_t offset,
    uint8_t version, uint8_t address_size, uint8_t offset_size, Fault *fault,
) noexcept nogil

cdef const Abbrev *abbrev_find_sparse(const AbbrevTable *table, uint64_t code) noexcept nogil

cdef void read_indirect(
    Cursor *c, const AbbrevTable *table, uint64_t unit, unsigned int slot, Die *die
) noexcept nogil


cdef inline const Abbrev *abbrev_find(const AbbrevTable *table, uint64_t code) noexcept nogil:
    if table.dense:
        return &table.items[code - 1] if code - 1 < table.nr_items else NULL
    return abbrev_find_sparse(table, code)


cdef inline void read_step(
    Cursor *c, const AbbrevTable *table, uint64_t unit, const Step *step, Die *die
) noexcept nogil:
    """Run one step; `unit` is the offset that unit-relative references count from."""
    cdef unsigned int action = step.action
    cdef unsigned int slot = step.slot
    cdef uint64_t length
    # A chain on one variable: compilers make it a jump table.
    if action == ACT_SKIP:
        cursor_skip(c, <uint64_t>step.arg)
        return
    elif action == ACT_REF4:
        die.value[slot] = unit + read_u32(c)
    elif action == ACT_U1:
        die.value[slot] = read_u8(c)
    elif action == ACT_U2:
        die.value[slot] = read_u16(c)
    elif action == ACT_U4:
        die.value[slot] = read_u32(c)
    elif action == ACT_U8:
        die.value[slot] = read_u64(c)
    elif action == ACT_CONST:
        die.value[slot] = <uint64_t>step.arg
    elif action == ACT_STRING:
        die.value[slot] = cursor_tell(c)
        read_string(c)
    elif action == ACT_SKIP_BLOCK:
        length = read_uleb(c)
        cursor_skip(c, length)
        return
    elif action == ACT_BLOCK:
        length = read_uleb(c)
        die.value[slot] = cursor_tell(c)
        die.length[slot] = length
        cursor_skip(c, length)
    elif action == ACT_SKIP_LEB:
        skip_leb(c)
        return
    elif action == ACT_ULEB:
        die.value[slot] = read_uleb(c)
    elif action == ACT_SLEB:
        die.value[slot] = <uint64_t>read_sleb(c)
    elif action == ACT_SKIP_STRING:
        read_string(c)
        return
    elif action == ACT_BLOCK1 or action == ACT_BLOCK2 or action == ACT_BLOCK4:
        length = read_u8(c) if action == ACT_BLOCK1 else read_u16(c) if action == ACT_BLOCK2 else read_u32(c)
        die.value[slot] = cursor_tell(c)
        die.length[slot] = length
        cursor_skip(c, length)
    elif action == ACT_SKIP_BLOCK1:
        cursor_skip(c, read_u8(c))
        return
    elif action == ACT_SKIP_BLOCK2:
        cursor_skip(c, read_u16(c))
        return
    elif action == ACT_SKIP_BLOCK4:
        cursor_skip(c, read_u32(c))
        return
    elif action == ACT_U3:
        die.value[slot] = read_u24(c)
    elif action == ACT_REF1:
        die.value[slot] = unit + read_u8(c)
    elif action == ACT_REF2:
        die.value[slot] = unit + read_u16(c)
    elif action == ACT_REF8:
        die.value[slot] = unit + read_u64(c)
    elif action == ACT_REF_ULEB:
        die.value[slot] = unit + read_uleb(c)
    elif action == ACT_INDIRECT:
        read_indirect(c, table, unit, slot, die)
        return
    else:
        cursor_fail(c)
        return
    die.form[slot] = step.form


cdef inline void read_attributes(
    Cursor *c, const AbbrevTable *table, uint64_t unit, const Abbrev *abbrev, Die *die
) noexcept nogil:
    """Read what follows the code of a DIE; `c.failed` when it is cut short."""
    cdef const Step *step = table.steps + abbrev.first_step
    cdef const Step *last = step + abbrev.nr_steps
    die.tag = abbrev.tag
    die.mask = abbrev.mask
    die.children = abbrev.children
    while step < last:
        read_step(c, table, unit, step, die)
        step += 1


cdef inline bint read_die(Cursor *c, const AbbrevTable *table, uint64_t unit, Die *die) noexcept nogil:
    """Read the DIE at `c`; False, with `c.failed`, when it is cut short or has no abbreviation."""
    cdef const Abbrev *abbrev
    cdef uint64_t code
    die.offset = cursor_tell(c)
    code = read_uleb(c)
    if code == 0:
        die.tag = 0
        die.mask = 0
        die.children = False
        return not c.failed
    abbrev = abbrev_find(table, code)
    if abbrev == NULL:
        cursor_fail(c)
        return False
    read_attributes(c, table, unit, abbrev, die)
    return not c.failed


cdef inline bint has(const Die *die, unsigned int slot) noexcept nogil:
    return (die.mask >> slot) & 1
