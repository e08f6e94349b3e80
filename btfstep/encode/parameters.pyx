# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only; indices come from the walk, which filled the arrays)
"""Judges the functions of a unit that the walk has just read.

BTF promises a tracer that it finds a function's arguments where the calling
convention says.  A function for which the DWARF shows otherwise is marked
here; `selection.pyx` decides with the marks of all units.

The rules are pahole's, step for step: names and types come from the abstract
instance of an inlined function; what is known of a parameter's place flows
from the concrete instance to the abstract one; then registers are counted off
along the parameter list.
"""

from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from btfstep.btf.constants cimport *
from btfstep.btf.memory cimport reserve
from btfstep.btf.strings cimport FAILED, NO_NAME, Text, pool_text
from btfstep.btf.types cimport Row, Type
from btfstep.dwarf.constants cimport DW_TAG_class_type, DW_TAG_interface_type, DW_TAG_structure_type
from btfstep.dwarf.location cimport ParameterPlace, parameter_place
from btfstep.dwarf.sections cimport fail, fail_memory
from btfstep.encode.context cimport Machine
from btfstep.encode.layout cimport is_packed
from btfstep.encode.record cimport (
    FUNCTION_OPTIMIZED_PARAMETERS, FUNCTION_REORDERED, FUNCTION_SIGNATURE_CHANGED, FUNCTION_UNCERTAIN_LOCATION,
    FUNCTION_UNEXPECTED_REGISTER, Parameter, Record, SavedFunction, Tag,
)
from btfstep.encode.unit cimport (
    FOUND_FUNCTION, FOUND_PARAMETER, OWNER_FUNCTION, OWNER_SHIFT, FormalParameter, Function, UnitEncoder,
)


cdef inline FormalParameter *first_parameter(UnitEncoder e, const Function *f) noexcept nogil:
    return &e.parameters[f.first_parameter - 1] if f.first_parameter else NULL


cdef inline FormalParameter *next_parameter(UnitEncoder e, const FormalParameter *p) noexcept nogil:
    return &e.parameters[p.next - 1] if p.next else NULL


cdef uint32_t byte_size(UnitEncoder e, uint32_t id) noexcept nogil:
    """DW_AT_byte_size of the first type that has one, from `id` on along DW_AT_type."""
    cdef const Type *t
    cdef unsigned int kind
    for _ in range(100):
        if id == 0:
            return 0
        t = &e.record.types[id]
        kind = info_kind(t.info)
        if kind == BTF_KIND_PTR:
            return e.context.machine.address_size
        if e.extras[id].byte_size:
            return e.extras[id].byte_size
        if (
            kind == BTF_KIND_INT or kind == BTF_KIND_FLOAT or kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION
            or kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64 or kind == BTF_KIND_FWD
        ):
            return 0
        id = t.ref
    return 0


cdef uint32_t note_member(UnitEncoder e, FormalParameter *p, uint32_t type_id) noexcept nogil:
    """An aggregate of which one member arrives: remember that member, for its true signature.

    Returns how many members were looked at.
    """
    cdef const Type *t
    cdef const Row *row
    cdef unsigned int kind
    cdef uint32_t offset, name, i
    if not p.first_pieces and not p.second_pieces:
        return 0
    if p.first_pieces and p.second_pieces:
        return 0
    if p.first_pieces & (p.first_pieces - 1) or p.second_pieces & (p.second_pieces - 1):
        return 0
    if p.name == NO_NAME:
        return 0
    offset = 0
    if p.first_pieces:
        while not p.first_pieces >> offset & 1:
            offset += 1
    else:
        while not p.second_pieces >> offset & 1:
            offset += 1
        offset += e.context.machine.address_size
    for _ in range(100):
        if type_id == 0:
            return 0
        t = &e.record.types[type_id]
        if e.extras[type_id].byte_size:
            break
        kind = info_kind(t.info)
        if kind != BTF_KIND_TYPEDEF and kind != BTF_KIND_CONST and kind != BTF_KIND_VOLATILE and kind != BTF_KIND_ARRAY:
            return 0
        type_id = t.ref
    if e.extras[type_id].tag != DW_TAG_structure_type or info_kind(t.info) != BTF_KIND_STRUCT:
        return 0
    for i in range(info_vlen(t.info)):
        row = &e.record.rows[t.extra + i]
        if (row.value & 0xFFFFFF if t.info >> 31 else row.value) == offset * 8:
            name = e.number_of(row.name)
            if row.type != 0 and name != 0 and name != FAILED:
                p.member_name = name
                p.member_type = row.type
            return i + 1
    return info_vlen(t.info)


cdef int place_parameter(UnitEncoder e, FormalParameter *p) noexcept nogil:
    """How large the parameter is and where it arrives, by its own DIE."""
    cdef const Machine *m = &e.context.machine
    cdef ParameterPlace place
    cdef uint32_t index, own
    own = e.resolve(p.type)
    if p.has_origin:
        index = e.find(p.origin, FOUND_PARAMETER)
        p.byte_size = <uint16_t>byte_size(e, e.resolve(e.parameters[index - 1].type)) if index else 0
    else:
        p.byte_size = <uint16_t>byte_size(e, own)
    p.in_memory = p.byte_size > (2 * m.address_size if m.two_registers else m.address_size)
    if not p.has_location:
        return 0
    parameter_place(
        &e.context.sections.c, &e.context.units.units[p.unit], &p.location, p.byte_size, m.two_registers, &place
    )
    p.register = place.register
    p.place_constant = place.constant
    p.place_stack = place.stack
    p.first_pieces = place.first_pieces
    p.second_pieces = place.second_pieces
    return e.charge(place.work + note_member(e, p, own))


cdef void share_with_origin(UnitEncoder e, Function *f, FormalParameter *p) noexcept nogil:
    """Take the name and type from the abstract instance, and tell it what is known here."""
    cdef FormalParameter *origin
    cdef uint32_t index = e.find(p.origin, FOUND_PARAMETER)
    if index == 0:
        return
    origin = &e.parameters[index - 1]
    p.name = origin.name
    if p.index != origin.index:
        f.reordered = True
    p.id = origin.id
    if p.has_location:
        origin.has_location = True
    if p.has_constant:
        origin.has_constant = True
    if p.place_constant:
        origin.place_constant = True
    if p.place_stack:
        origin.place_stack = True
    if p.register >= 0:
        origin.register = p.register
    if p.byte_size:
        origin.byte_size = p.byte_size
    if p.in_memory:
        origin.in_memory = True
    origin.first_pieces |= p.first_pieces
    origin.second_pieces |= p.second_pieces
    if p.member_name and not origin.member_name:
        origin.member_name = p.member_name
        origin.member_type = p.member_type


cdef inline int slots_of(const FormalParameter *p, const Machine *m) noexcept nogil:
    """Registers that the parameter takes by the calling convention."""
    if not m.two_registers or p.byte_size <= m.address_size:
        return 1
    return (p.byte_size + <int>m.address_size - 1) // <int>m.address_size


cdef bint next_keeps_slots(
    UnitEncoder e, const FormalParameter *p, int register, int slots, const Machine *m
) noexcept nogil:
    """Whether the next parameter arrives where it would if this one takes all its registers."""
    cdef const FormalParameter *next = next_parameter(e, p)
    if next == NULL or next.register < 0:
        return False
    register += slots
    return register < m.nr_registers and next.register == m.registers[register]


cdef void match_registers(UnitEncoder e, Function *f, const Machine *m) noexcept nogil:
    """clang kept the signature: each parameter has to be within its own registers."""
    cdef FormalParameter *p = first_parameter(e, f)
    cdef int register = 0
    cdef int slots, i
    cdef bint expected
    while p != NULL:
        slots = slots_of(p, m)
        if not p.in_memory:
            if register >= m.nr_registers:
                return
            if p.register >= 0:
                expected = False
                for i in range(slots):
                    if register + i >= m.nr_registers:
                        break
                    if p.register == m.registers[register + i]:
                        expected = True
                        break
                if not expected:
                    p.unexpected = True
            register += slots
        p = next_parameter(e, p)


cdef void count_registers(UnitEncoder e, Function *f, const Machine *m) noexcept nogil:
    """Count the registers off along the parameters; mark those that are not where they should be."""
    cdef FormalParameter *p = first_parameter(e, f)
    cdef bint rewrite = e.context.options.true_signature and f.signature_changed
    cdef int register = 0
    cdef int slots, taken, expected
    cdef bint available
    while p != NULL:
        slots = slots_of(p, m)
        available = register < m.nr_registers
        expected = m.registers[register] if available else -1
        taken = 1 if p.in_memory else slots
        if p.has_location:
            if rewrite and p.place_constant:
                p.optimized = True
                taken = 0
            elif not available:
                taken = 0
            elif rewrite and p.place_stack:
                if p.in_memory:
                    taken = 0
                else:
                    p.unexpected = True
            elif p.register < 0:
                if rewrite:
                    p.unexpected = True
                else:
                    p.optimized = True
            elif expected >= 0 and expected != p.register:
                p.unexpected = True
            elif rewrite and (p.first_pieces or p.second_pieces):
                if p.first_pieces and p.second_pieces:
                    taken = slots
                elif next_keeps_slots(e, p, register, slots, m):
                    p.member_name = 0
                    taken = slots
                elif p.member_name and p.member_type:
                    p.id = p.member_type
                    taken = 1
        elif p.has_constant and not f.clang:
            p.optimized = True
        elif rewrite:
            if available and next_keeps_slots(e, p, register, slots, m):
                taken = slots
            else:
                p.optimized = True
                taken = 0
        register += taken
        p = next_parameter(e, p)


cdef bint is_struct(UnitEncoder e, uint32_t id) noexcept nogil:
    """Whether typedefs and const lead to a struct."""
    cdef unsigned int kind
    for _ in range(100):
        if id == 0:
            return False
        kind = info_kind(e.record.types[id].info)
        if e.extras[id].tag == DW_TAG_structure_type:
            return True
        if kind != BTF_KIND_TYPEDEF and kind != BTF_KIND_CONST:
            return False
        id = e.record.types[id].ref
    return False


cdef bint has_uncertain_location(UnitEncoder e, const Function *f) noexcept nogil:
    """A packed struct behind the last register: compilers do not agree where it lies on the stack."""
    cdef const FormalParameter *p = first_parameter(e, f)
    cdef int nr_registers = e.context.machine.nr_registers
    cdef int index = 0
    cdef unsigned int tag
    if <int>f.nr_parameters < nr_registers:
        return False
    while p != NULL:
        if index >= nr_registers and p.id:
            tag = e.extras[p.id].tag
            if (
                (tag == DW_TAG_structure_type or tag == DW_TAG_class_type or tag == DW_TAG_interface_type)
                and e.record.types[p.id].name != 0
                and is_packed(e, p.id)
            ):
                return True
        index += 1
        p = next_parameter(e, p)
    return False


cdef int member_parameter_name(UnitEncoder e, uint32_t name, uint32_t member, uint32_t *joined) noexcept nogil:
    """`name`__`member`, for the one member of an aggregate that arrives."""
    cdef const Text *a = pool_text(e.context.strings, name)
    cdef const Text *b = pool_text(e.context.strings, member)
    cdef char *text = <char *>malloc(<size_t>a.length + b.length + 2)
    if text == NULL:
        return fail_memory(&e.fault)
    memcpy(text, a.bytes, a.length)
    memcpy(text + a.length, "__", 2)
    memcpy(text + a.length + 2, b.bytes, b.length)
    joined[0] = e.context.strings.intern_copy(<const unsigned char *>text, <uint64_t>a.length + b.length + 2)
    free(text)
    return 0 if joined[0] != FAILED else fail(&e.fault, "names of parameters come to an absurd length", -1, 0)


cdef int save_function(UnitEncoder e, uint32_t index) noexcept nogil:
    """Put one function into the record."""
    cdef Record *r = e.record
    cdef const Function *f = &e.functions[index]
    cdef const FormalParameter *p
    cdef SavedFunction *saved
    cdef uint32_t i, name
    cdef uint32_t owner = <uint32_t>OWNER_FUNCTION << OWNER_SHIFT | index
    cdef bint rewrite = e.context.options.true_signature and f.signature_changed
    if reserve(<void **>&r.functions, &r.functions_cap, <uint64_t>r.nr_functions + 1, sizeof(SavedFunction)) < 0:
        return fail_memory(&e.fault)
    if reserve(
        <void **>&r.parameters, &r.parameters_cap, <uint64_t>r.nr_parameters + f.nr_parameters + 1, sizeof(Parameter)
    ) < 0:
        return fail_memory(&e.fault)
    saved = &r.functions[r.nr_functions]
    saved.address = f.address
    saved.symbol = e.context.function_of[f.name] - 1
    saved.returns = f.returns
    saved.first_parameter = r.nr_parameters
    saved.flags = 0
    if f.unexpected_register:
        saved.flags |= FUNCTION_UNEXPECTED_REGISTER
    if f.optimized_parameters:
        saved.flags |= FUNCTION_OPTIMIZED_PARAMETERS
    if f.reordered:
        saved.flags |= FUNCTION_REORDERED
    if f.signature_changed:
        saved.flags |= FUNCTION_SIGNATURE_CHANGED
    if has_uncertain_location(e, f):
        saved.flags |= FUNCTION_UNCERTAIN_LOCATION
    p = first_parameter(e, f)
    while p != NULL:
        if not (
            (f.reordered and (not p.has_location or p.optimized)) or (rewrite and p.optimized)
        ):
            name = e.number_of(p.name)
            if name == FAILED:
                return -1
            if rewrite and p.member_name and name != NO_NAME:
                if member_parameter_name(e, name, p.member_name, &name) < 0:
                    return -1
            r.parameters[r.nr_parameters].name = name if name != NO_NAME else 0
            r.parameters[r.nr_parameters].type = p.id
            r.nr_parameters += 1
        p = next_parameter(e, p)
    if f.varargs:
        r.parameters[r.nr_parameters].name = 0
        r.parameters[r.nr_parameters].type = 0
        r.nr_parameters += 1
    saved.nr_parameters = <uint16_t>(r.nr_parameters - saved.first_parameter)
    saved.first_tag = r.nr_function_tags
    for i in range(e.first_tag(owner), e.nr_tags):
        if e.tags[i].owner != owner:
            break
        if reserve(
            <void **>&r.function_tags, &r.function_tags_cap, <uint64_t>r.nr_function_tags + 1, sizeof(Tag)
        ) < 0:
            return fail_memory(&e.fault)
        r.function_tags[r.nr_function_tags] = e.tags[i]
        r.nr_function_tags += 1
    saved.nr_tags = <uint32_t>(r.nr_function_tags - saved.first_tag)
    r.nr_functions += 1
    return 0


cdef int save_functions(UnitEncoder e) noexcept nogil:
    """Fill the record's functions, in pahole's order; -1 with the encoder's `fault`."""
    cdef const Machine *m = &e.context.machine
    cdef Function *f
    cdef FormalParameter *p
    cdef uint32_t i, k, index
    cdef bint unexpected, struct_parameter, named
    for i in range(e.nr_parameters):
        p = &e.parameters[i]
        p.id = e.resolve(p.type)
        if place_parameter(e, p) < 0:
            return -1
    for k in range(e.nr_order):
        f = &e.functions[e.order[k]]
        if f.clang and not f.inlined:
            if not f.has_origin:
                f.signature_changed = f.nocall
            else:
                index = e.find(f.origin, FOUND_FUNCTION)
                f.signature_changed = index != 0 and e.functions[index - 1].nocall
        if f.name == NO_NAME:
            if f.origin == 0 and f.specification == 0:
                continue
            index = e.find(f.origin, FOUND_FUNCTION)
            if index == 0:
                index = e.find(f.specification, FOUND_FUNCTION)
            if index:
                f.name = e.functions[index - 1].name
        p = first_parameter(e, f)
        while p != NULL:
            if p.type == 0 and p.origin != 0:
                share_with_origin(e, f, p)
            p = next_parameter(e, p)
        f.returns = e.resolve(f.type)
    for k in range(e.nr_order):
        f = &e.functions[e.order[k]]
        if f.clang and not f.signature_changed:
            match_registers(e, f, m)
        else:
            count_registers(e, f, m)
        unexpected = struct_parameter = False
        p = first_parameter(e, f)
        while p != NULL:
            if p.optimized or not p.has_location:
                f.optimized_parameters = True
            if p.unexpected:
                unexpected = True
            if is_struct(e, p.id):
                struct_parameter = True
            p = next_parameter(e, p)
        # A struct may take several registers, which throws the count off.
        if unexpected and not struct_parameter:
            f.unexpected_register = True
        if f.returns == 0 and f.has_origin:
            index = e.find(f.origin, FOUND_FUNCTION)
            if index:
                f.returns = e.functions[index - 1].returns
    for k in range(e.nr_order):
        index = e.order[k]
        f = &e.functions[index]
        if f.declaration or f.name >= e.context.nr_function_of or e.context.function_of[f.name] == 0:
            continue  # (no name is a large number)
        named = True
        p = first_parameter(e, f)
        while p != NULL:
            if p.name == NO_NAME:
                named = False
                break
            p = next_parameter(e, p)
        if named and save_function(e, index) < 0:
            return -1
    return 0
