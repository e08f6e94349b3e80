# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only; indices come from the walk, which filled the arrays)
"""Chooses the variables of a unit that the walk has just read.

Listed is what lies at a fixed address in a wanted section (per-CPU data, or
any section with `global_var`), is declared outside of functions, and has a
type of known size.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport strncmp

from btfstep.btf.constants cimport BTF_VAR_GLOBAL_ALLOCATED, BTF_VAR_STATIC
from btfstep.btf.memory cimport reserve
from btfstep.btf.strings cimport FAILED, NO_NAME, Text, pool_text
from btfstep.dwarf.location cimport variable_address
from btfstep.dwarf.sections cimport fail, fail_memory
from btfstep.encode.layout cimport size_of
from btfstep.encode.record cimport Record, Tag, Variable
from btfstep.encode.unit cimport FOUND_OBJECT, OWNER_OBJECT, OWNER_SHIFT, DataObject, UnitEncoder

cdef enum:
    NAME_LIMIT = 128  # KSYM_NAME_LEN when pahole fixed it; the NUL does not count


cdef inline bint starts(const Text *text, const char *prefix, size_t length) noexcept nogil:
    return strncmp(<const char *>text.bytes, prefix, length) == 0


cdef bint is_generated(const Text *text) noexcept nogil:
    """Names that the kernel's macros make up, of no use to anyone."""
    return (
        starts(text, "__UNIQUE_ID", 11)
        or starts(text, "__tpstrtab_", 11)
        or starts(text, "__exitcall_", 11)
        or starts(text, "__gendwarfksyms_ptr_", 20)
        or starts(text, "__func_stack_frame_non_standard_", 32)
    )


cdef bint is_valid(const Text *text) noexcept nogil:
    """Whether the kernel's BTF verifier takes the name."""
    cdef uint32_t i
    cdef uint8_t c
    if text.length == 0 or text.length > NAME_LIMIT:
        return False
    for i in range(text.length):
        c = text.bytes[i]
        if c == 95 or c == 46 or 65 <= c <= 90 or 97 <= c <= 122:  # _ . A-Z a-z
            continue
        if i == 0 or not 48 <= c <= 57:
            return False
    return True


cdef int save_variables(UnitEncoder e) noexcept nogil:
    """Fill the record's variables and their tags; -1 with the encoder's `fault`."""
    cdef Record *r = e.record
    cdef const DataObject *v
    cdef const DataObject *named
    cdef const Text *text
    cdef Variable *out
    cdef uint32_t i, k, index, section, name, type_id, owner
    cdef uint64_t address, size
    for i in range(e.nr_objects):
        v = &e.objects[i]
        if not v.top_level or v.artificial or v.declaration:
            continue
        if not variable_address(&e.context.sections.c, &e.context.units.units[v.unit], &v.location, &address):
            continue
        section = e.context.find_section(address)
        if section == 0 or not e.context.section_wanted[section]:
            continue
        address -= e.context.section_address[section]
        named = v
        index = e.find(v.specification, FOUND_OBJECT) if v.has_specification else 0
        if index:
            named = &e.objects[index - 1]
        if named.name == NO_NAME:
            continue
        name = e.number_of(named.name)
        if name == FAILED:
            return -1
        text = pool_text(e.context.strings, name)
        if is_generated(text):
            continue
        # Variables of discarded sections have address 0 too.
        if address == 0 and not e.context.has_object(section, name):
            continue
        if not is_valid(text):
            if e.context.options.force:
                continue
            return fail(
                &e.fault, "variable with a name that BTF does not allow (--btf_encode_force leaves it out)",
                e.context.units.units[v.unit].section, e.base + named.rel,
            )
        type_id = e.resolve(named.type)
        if type_id == 0:
            if e.context.options.force:
                continue
            return fail(
                &e.fault, "variable of type void (--btf_encode_force leaves it out)",
                e.context.units.units[v.unit].section, e.base + named.rel,
            )
        size = size_of(e, type_id)
        if size == 0 or size >> 32 or address >> 32:
            continue
        if reserve(<void **>&r.variables, &r.variables_cap, <uint64_t>r.nr_variables + 1, sizeof(Variable)) < 0:
            return fail_memory(&e.fault)
        out = &r.variables[r.nr_variables]
        out.name = name
        out.type = type_id
        out.section = section
        out.offset = address
        out.size = <uint32_t>size
        out.linkage = BTF_VAR_GLOBAL_ALLOCATED if named.external else BTF_VAR_STATIC
        owner = <uint32_t>OWNER_OBJECT << OWNER_SHIFT | <uint32_t>(named - e.objects)
        for k in range(e.first_tag(owner), e.nr_tags):
            if e.tags[k].owner != owner:
                break
            # Any number of variables may share a declaration, with its tags.
            if e.charge(64) < 0:
                return -1
            if reserve(
                <void **>&r.variable_tags, &r.variable_tags_cap, <uint64_t>r.nr_variable_tags + 1, sizeof(Tag)
            ) < 0:
                return fail_memory(&e.fault)
            r.variable_tags[r.nr_variable_tags] = e.tags[k]
            r.variable_tags[r.nr_variable_tags].owner = r.nr_variables
            r.nr_variable_tags += 1
        r.nr_variables += 1
    return 0
