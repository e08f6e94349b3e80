# SPDX-License-Identifier: GPL-2.0-only
"""Write types as C: the text of ``bpftool btf dump file FILE format c``.

A header is made in two passes.  `order` visits types depth first and queues
each definition after those that it embeds; what is only pointed to can wait,
because a forward declaration will do.  `emit` then goes through the queue and
writes each definition, and before it the forward declarations that it still
lacks.  Everything goes to memory, so that an error leaves no half a header.

A header of some types only is cut out of the whole one: the whole is written
first, which settles every name and the order, and then those definitions are
copied from it that are needed.

BTF from a file may refer to itself in ways that C cannot express, or expand to
an endless text.  Recursion has a bound (DEEPEST), and so have the number of
types visited and the size of the text; what exceeds them is an error.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport strcmp

from btfstep.btf.cnames cimport IDENTIFIERS, TAGS, NameCounter
from btfstep.btf.constants cimport (
    BTF_KIND_ARRAY,
    BTF_KIND_CONST,
    BTF_KIND_DATASEC,
    BTF_KIND_DECL_TAG,
    BTF_KIND_ENUM,
    BTF_KIND_ENUM64,
    BTF_KIND_FLOAT,
    BTF_KIND_FUNC,
    BTF_KIND_FUNC_PROTO,
    BTF_KIND_FWD,
    BTF_KIND_INT,
    BTF_KIND_PTR,
    BTF_KIND_RESTRICT,
    BTF_KIND_STRUCT,
    BTF_KIND_TYPE_TAG,
    BTF_KIND_TYPEDEF,
    BTF_KIND_UNION,
    BTF_KIND_VAR,
    BTF_KIND_VOLATILE,
)
from btfstep.btf.csort cimport RANK_LAST, SortKey, TypeSorter
from btfstep.btf.output cimport (
    FULL,
    free_output,
    init_output,
    put,
    put_bytes,
    put_signed,
    put_unsigned,
)
from btfstep.btf.reader cimport (
    ENUMERATOR,
    ENUMERATOR64,
    MEMBER,
    PARAM,
    RECORD,
    SECINFO,
    BtfReader,
    kflag_of,
    kind_of,
    member_bits,
    member_offset,
    vlen_of,
)

cdef enum:
    DEEPEST = 1024  # types inside types: C compilers give up long before
    RESOLVE = 32  # references in a row that the size of a member is looked for
    NAME_MAX = 255  # bytes of a name that had to be made unique
    TABS_MAX = 13

# Text and visits beyond these are no header. The kernel's BTF makes half as
# much text as it has bytes, in two visits for each member.
cdef uint64_t OUTPUT_MIN = 64 << 20
cdef uint64_t OUTPUT_RATIO = 16
cdef uint64_t STEPS_MIN = 10_000_000
cdef uint64_t STEPS_RATIO = 64

cdef const char *PREAMBLE = b"""\
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)
#endif

#ifndef __ksym
#define __ksym __attribute__((section(".ksyms")))
#endif

#ifndef __weak
#define __weak __attribute__((weak))
#endif

#ifndef __bpf_fastcall
#if __has_attribute(bpf_fastcall)
#define __bpf_fastcall __attribute__((bpf_fastcall))
#else
#define __bpf_fastcall
#endif
#endif

"""
cdef const char *EPILOGUE = b"""\
#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

#endif /* __VMLINUX_H__ */
"""

cdef const char *TABS = b"\t\t\t\t\t\t\t\t\t\t\t\t\t"


cdef class CDumper:
    """Writes C for the types of one BTF. Good for one header, or for any number of `text` calls."""

    def __cinit__(self, BtfReader btf):
        cdef uint32_t id
        self.btf = btf
        self.names = NameCounter()
        self.states = <TypeState *>calloc(btf.total, sizeof(TypeState))
        if self.states == NULL:
            raise MemoryError
        for id in range(btf.total):
            self.states[id].align = -1
        init_output(&self.out, OUTPUT_MIN + OUTPUT_RATIO * (btf.text_end + 4 * <uint64_t>btf.total))
        init_output(&self.whole, 0)

    def __dealloc__(self):
        free(self.states)
        free(self.queue)
        free(self.stack)
        free(self.spans)
        free_output(&self.out)
        free_output(&self.whole)

    def header(self, *, sort=True, roots=()):
        """The header of all types, or of `roots` (type ids, in this order) and what they need.

        `sort` orders it by names rather than by type ids; roots have their own order.
        Raises FormatError if C cannot express the types, IndexError if there is no such root.
        """
        self.start()
        put(&self.out, PREAMBLE)
        if roots:
            for root in roots:
                if not 0 <= root < self.btf.total:
                    raise IndexError(f"no type {root}")
                self.order(root, False, 0)
        else:
            self.order_all(sort)
        self.emit_queue()
        if not roots:
            self.emit_kfuncs(None)
        put(&self.out, EPILOGUE)
        return self.result()

    def excerpt(self, wanted, *, sort=True):
        """The header of `wanted` (type ids) and what they need, as the header of all types has it.

        A definition has the same text there, and they come in the same order. A forward
        declaration stands before the first definition here that needs it. A function brings
        what its prototype mentions, and if it is a kfunc, the prototype. Raises as `header`.
        """
        cdef uint32_t id, i
        cdef uint32_t *place
        cdef list needed = []
        for root in wanted:
            if not 0 <= root < self.btf.total:
                raise IndexError(f"no type {root}")
        self.start()
        self.spans = <Span *>calloc(self.btf.total, sizeof(Span))
        if self.spans == NULL:
            raise MemoryError
        self.order_all(sort)
        self.emit_queue()
        self.emit_kfuncs(None)
        self.whole = self.out
        self.out.data = NULL
        self.out.size = self.out.room = 0
        self.replay = True

        place = <uint32_t *>calloc(self.btf.total, sizeof(uint32_t))
        if place == NULL:
            raise MemoryError
        try:
            for i in range(self.queued):
                place[self.queue[i]] = i
            for id in range(1, self.btf.total):
                self.states[id].order = self.states[id].emit = NOT_YET
                self.states[id].declared = False
            self.queued = 0
            functions = set()
            for root in wanted:
                id = root
                if kind_of(self.btf.types[id]) == BTF_KIND_FUNC:
                    functions.add(id)
                    id = self.btf.types[id][2]
                self.order(id, False, 0)
            for i in range(self.queued):
                needed.append((place[self.queue[i]], self.queue[i]))
            needed.sort()
            for i in range(self.queued):
                self.queue[i] = needed[i][1]
        finally:
            free(place)
        put(&self.out, PREAMBLE)
        self.emit_queue()
        for function in sorted(functions):
            self.current = function
            self.emit(self.btf.types[<uint32_t>function][2], function, 0)  # what its prototype mentions
        self.emit_kfuncs(functions)
        put(&self.out, EPILOGUE)
        return self.result()

    def text(self, id):
        """The C text of one type, as bytes: its definition or prototype, or how it is written in a declaration.

        Raises FormatError if C cannot express it, IndexError if there is no such type.
        """
        cdef const uint32_t *record
        cdef unsigned int kind
        cdef Name name
        if not 0 <= id < self.btf.total:
            raise IndexError(f"no type {id}")
        record = self.btf.types[<uint32_t>id]
        kind = kind_of(record)
        self.out.size = self.steps = 0
        self.stacked = 0
        self.current = id
        if not self.plain:
            self.plain = True
            for other in range(self.btf.total):
                self.states[other].given = 1
        if self.names.used:
            self.names = NameCounter()  # each text stands alone
        name.text = self.btf.string(record[0])
        name.given = 1
        if kind in (BTF_KIND_STRUCT, BTF_KIND_UNION, BTF_KIND_ENUM, BTF_KIND_ENUM64, BTF_KIND_FWD, BTF_KIND_TYPEDEF):
            if record[0] or kind in (BTF_KIND_ENUM, BTF_KIND_ENUM64):
                self.emit_definition(id, 0)
                self.out.size -= 1  # one line break is enough
                return self.result()
        if kind == BTF_KIND_FUNC:
            self.emit_declaration(record[2], name, 0, 0)
            put(&self.out, b";\n")
        elif kind == BTF_KIND_VAR:
            put(&self.out, b"extern ")
            self.emit_declaration(record[2], name, 0, 0)
            put(&self.out, b";\n")
        else:
            name.text = b""
            self.emit_declaration(id, name, 0, 0)
        return self.result()

    cdef int start(self) except -1:
        self.mark_referenced()
        self.check_chains()
        self.states[0].order = self.states[0].emit = DONE
        return 0

    def result(self):
        self.check_output()
        return self.out.data[: self.out.size] if self.out.size else b""

    cdef int check_output(self) except -1:
        if self.out.failed == FULL:
            raise self.btf.type_error(self.current, f"text of more than {self.out.limit >> 20} MiB, up to here")
        if self.out.failed:
            raise MemoryError
        return 0

    cdef int step(self, uint32_t id, int depth) except -1:
        """Account for one visit of a type."""
        self.steps += 1
        if depth > DEEPEST:
            raise self.btf.type_error(id, f"contains itself, or is inside more than {DEEPEST} others")
        if self.steps > STEPS_MIN + STEPS_RATIO * self.btf.total:
            raise self.btf.type_error(id, "types share each other too often to be written in full")
        return 0

    # Before anything is ordered: what cannot be C.

    cdef int mark_referenced(self) except -1:
        """Find out which types others refer to: an anonymous enumeration that nobody does stands alone."""
        cdef uint32_t id, i, vlen
        cdef const uint32_t *record
        cdef const uint32_t *part
        cdef unsigned int kind
        for id in range(1, self.btf.total):
            record = self.btf.types[id]
            part = record + RECORD
            kind = kind_of(record)
            vlen = vlen_of(record)
            if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
                for i in range(vlen):
                    self.states[part[MEMBER * i + 1]].referenced = True
            elif kind == BTF_KIND_FUNC_PROTO:
                # Not its own type, the result: bpftool does not count that either.
                for i in range(vlen):
                    self.states[part[PARAM * i + 1]].referenced = True
            elif kind == BTF_KIND_DATASEC:
                for i in range(vlen):
                    self.states[part[SECINFO * i]].referenced = True
            elif kind == BTF_KIND_ARRAY:
                self.states[part[0]].referenced = self.states[part[1]].referenced = True
            elif is_reference(kind) or kind == BTF_KIND_FUNC or kind == BTF_KIND_VAR or kind == BTF_KIND_DECL_TAG:
                self.states[record[2]].referenced = True
        return 0

    cdef int check_chains(self) except -1:
        """Refuse references that lead from one to the next and never end."""
        cdef uint32_t id, at
        cdef const uint32_t *record
        cdef unsigned int kind
        for id in range(1, self.btf.total):
            at = id
            for _ in range(DEEPEST):
                record = self.btf.types[at]
                kind = kind_of(record)
                if kind == BTF_KIND_ARRAY:
                    at = record[RECORD]
                elif is_reference(kind) or kind == BTF_KIND_DECL_TAG:
                    at = record[2]
                else:
                    break
            else:
                raise self.btf.type_error(id, f"reference cycle, or more than {DEEPEST} references in a row")
        return 0

    # First pass: the order of definitions.

    cdef int order_all(self, bint sort) except -1:
        cdef uint32_t id
        if sort:
            return self.order_sorted()
        for id in range(1, self.btf.total):
            self.order(id, False, 0)
        return 0

    cdef int order_sorted(self) except -1:
        """Order all types, by rank and name.

        Most of the last rank (functions, prototypes, pointers) has nothing left to say once the
        others are through, so only what has is sorted.
        """
        cdef TypeSorter sorter = TypeSorter(self.btf)
        cdef SortKey *keys = <SortKey *>malloc(self.btf.total * sizeof(SortKey))
        cdef uint32_t count = 0
        cdef uint32_t id, i
        cdef uint32_t first = 0
        if keys == NULL:
            raise MemoryError
        try:
            for id in range(1, self.btf.total):
                if sorter.rank(id) < RANK_LAST:
                    sorter.fill(id, &keys[count])
                    count += 1
            sorter.sort(keys, count)
            # bpftool takes void, which is type 0, for the first one, and so never starts from
            # whatever is. It only has an effect if nothing else needs that type.
            for i in range(1, count):
                self.order(keys[i].id, False, 0)
            if count:
                first = keys[0].id
            count = 0
            for id in range(1, self.btf.total):
                if id != first and not self.settled(id) and sorter.rank(id) == RANK_LAST:
                    sorter.fill(id, &keys[count])
                    count += 1
            sorter.sort(keys, count)
            for i in range(count):
                self.order(keys[i].id, False, 0)
            # An error in that first one is an error all the same.
            count = self.queued
            self.order(first, False, 0)
            self.queued = count
        finally:
            free(keys)
        return 0

    cdef bint settled(self, uint32_t id) noexcept:
        """Whether ordering a type would neither queue anything nor change what comes later."""
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *part = record + RECORD
        cdef unsigned int kind = kind_of(record)
        if kind == BTF_KIND_FUNC or kind == BTF_KIND_VAR or kind == BTF_KIND_DECL_TAG:
            return True
        if kind != BTF_KIND_FUNC_PROTO:
            return self.settled_chain(id)
        for _ in range(vlen_of(record)):
            if not self.settled_chain(part[1]):
                return False
            part += PARAM
        return self.settled_chain(record[2])

    cdef bint settled_chain(self, uint32_t id) noexcept:
        cdef const uint32_t *record
        cdef unsigned int kind
        while self.states[id].order != DONE:
            record = self.btf.types[id]
            kind = kind_of(record)
            if kind == BTF_KIND_INT or kind == BTF_KIND_FLOAT:
                return True
            if kind == BTF_KIND_TYPEDEF:
                return False
            if kind == BTF_KIND_ARRAY:
                id = record[RECORD]
            elif is_reference(kind):
                id = record[2]
            else:
                return False
        return True

    cdef int order(self, uint32_t id, bint through_pointer, int depth) except -1:
        """Queue what has to be defined for this type, and then it.

        Returns 1 if whoever refers to it needs it defined before, 0 if a forward
        declaration will do.
        """
        cdef TypeState *state = &self.states[id]
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *part = record + RECORD
        cdef unsigned int kind = kind_of(record)
        cdef bint named = record[0] != 0
        cdef int strong
        if state.order == DONE:
            return 1
        self.step(id, depth)
        if state.order == NOW:
            if through_pointer and named:
                return 0
            raise self.btf.type_error(id, "contains itself")
        depth += 1
        if kind == BTF_KIND_INT or kind == BTF_KIND_FLOAT:
            state.order = DONE
            return 0
        if kind == BTF_KIND_PTR:
            strong = self.order(record[2], True, depth)
            state.order = DONE
            return strong
        if kind == BTF_KIND_ARRAY:
            return self.order(part[0], False, depth)
        if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            if through_pointer and named:
                return 0
            state.order = NOW
            for _ in range(vlen_of(record)):
                self.order(part[1], False, depth)
                part += MEMBER
            if named:
                self.enqueue(id)
            state.order = DONE
            return 1
        if kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64 or kind == BTF_KIND_FWD:
            if named or not state.referenced:
                self.enqueue(id)
            state.order = DONE
            return 1
        if kind == BTF_KIND_TYPEDEF:
            strong = self.order(record[2], through_pointer, depth)
            if through_pointer and not strong:
                return 0
            self.enqueue(id)
            state.order = DONE
            return 1
        if is_reference(kind):
            return self.order(record[2], through_pointer, depth)
        if kind == BTF_KIND_FUNC_PROTO:
            strong = self.order(record[2], through_pointer, depth)
            for _ in range(vlen_of(record)):
                strong |= self.order(part[1], through_pointer, depth)
                part += PARAM
            return strong
        # Functions, variables, tags, and kinds of a later format define no type.
        state.order = DONE
        return 0

    cdef int enqueue(self, uint32_t id) except -1:
        push_id(&self.queue, &self.queued, &self.queue_room, id)
        return 0

    # Second pass: the text.

    cdef int emit_queue(self) except -1:
        cdef uint32_t i
        for i in range(self.queued):
            self.current = self.queue[i]
            self.emit(self.queue[i], 0, 0)
            self.check_output()
        return 0

    cdef int emit(self, uint32_t id, uint32_t container, int depth) except -1:
        """Write the definition of a type (`container` 0), or the declarations that `container` needs of it."""
        cdef TypeState *state = &self.states[id]
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *part = record + RECORD
        cdef unsigned int kind = kind_of(record)
        cdef bint composite = kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION
        cdef bint named = record[0] != 0
        if state.emit == DONE:
            return 0
        self.step(id, depth)
        depth += 1
        if state.emit == NOW:
            if state.declared:
                return 0
            if composite:
                if id == container:
                    return 0
                if not named:
                    raise self.btf.type_error(id, "contains itself")
                self.emit_tag(id, NULL)
                put(&self.out, b";\n\n")
                state.declared = True
            elif kind == BTF_KIND_TYPEDEF:
                self.emit_typedef(id, depth)
                state.declared = True
            return 0
        if kind == BTF_KIND_INT:
            self.emit_vector_alias(id)
            state.emit = DONE
        elif kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
            if container == 0:
                self.emit_definition(id, depth)
            state.emit = DONE
        elif kind == BTF_KIND_FWD:
            self.emit_definition(id, depth)
            state.emit = DONE
        elif kind == BTF_KIND_ARRAY:
            self.emit(part[0], container, depth)
        elif kind == BTF_KIND_TYPEDEF:
            state.emit = NOW
            self.emit(record[2], id, depth)
            # It may have been needed, and written, on the way.
            if not state.declared:
                self.emit_typedef(id, depth)
            state.emit = DONE
        elif is_reference(kind):
            self.emit(record[2], container, depth)
        elif kind == BTF_KIND_FUNC_PROTO:
            self.emit(record[2], container, depth)
            for _ in range(vlen_of(record)):
                self.emit(part[1], container, depth)
                part += PARAM
        elif composite:
            state.emit = NOW
            if container == 0 or not named:
                # Its members will be written out, here or where it is embedded.
                for _ in range(vlen_of(record)):
                    self.emit(part[1], id if named else container, depth)
                    part += MEMBER
            elif not state.declared and id != container:
                self.emit_tag(id, NULL)
                put(&self.out, b";\n\n")
                state.declared = True
            if container == 0:
                self.emit_definition(id, depth)
                state.emit = DONE
            else:
                state.emit = NOT_YET
        return 0

    cdef int emit_typedef(self, uint32_t id, int depth) except -1:
        # The compiler's own; a header made with one compiler has to suit another.
        if strcmp(self.btf.string(self.btf.types[id][0]), b"__builtin_va_list") == 0:
            return 0
        return self.emit_definition(id, depth)

    cdef int emit_definition(self, uint32_t id, int depth) except -1:
        """Write what a type is defined as, a semicolon and an empty line."""
        cdef const uint32_t *record = self.btf.types[id]
        cdef unsigned int kind = kind_of(record)
        cdef Span *span
        cdef Name name
        if self.replay:
            span = &self.spans[id]
            put_bytes(&self.out, self.whole.data + span.start, span.end - span.start)
            return 0
        cdef uint64_t start = self.out.size
        if kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            self.emit_struct(id, 0, depth)
        elif kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
            self.emit_enum(id, 0)
        elif kind == BTF_KIND_FWD:
            self.emit_tag(id, NULL)
        else:
            name = self.identifier(id)
            if record[2] == 0 and name.given < 2 and strcmp(name.text, b"__gnuc_va_list") == 0:
                # Old versions of GCC say that it is void.
                put(&self.out, b"typedef __builtin_va_list __gnuc_va_list")
            else:
                put(&self.out, b"typedef ")
                self.emit_declaration(record[2], name, 0, depth)
        put(&self.out, b";\n\n")
        if self.spans != NULL:
            self.spans[id].start = start
            self.spans[id].end = self.out.size
        return 0

    cdef int emit_vector_alias(self, uint32_t id) except -1:
        """Define the types that GCC's vector intrinsics for Arm take for granted."""
        cdef Name name = self.tag_name(id)
        cdef bytes text
        if name.text[0] != b"_" or name.text[1] != b"_" or name.text[2] != b"P" or name.given > 1:
            return 0
        for alias, meaning in (
            (b"__Poly8_t", b"unsigned char"),
            (b"__Poly16_t", b"unsigned short"),
            (b"__Poly64_t", b"unsigned long long"),
            (b"__Poly128_t", b"unsigned __int128"),
        ):
            if alias == <bytes>name.text:
                text = b"typedef %b %b;\n\n" % (meaning, alias)
                put(&self.out, text)
        return 0

    cdef int emit_tag(self, uint32_t id, const char *keyword) except -1:
        """Write ``struct NAME``, or the like."""
        cdef const uint32_t *record = self.btf.types[id]
        cdef unsigned int kind = kind_of(record)
        if keyword == NULL:
            if kind == BTF_KIND_FWD:
                keyword = b"union " if kflag_of(record) else b"struct "
            elif kind == BTF_KIND_STRUCT:
                keyword = b"struct " if record[0] else b"struct"
            elif kind == BTF_KIND_UNION:
                keyword = b"union " if record[0] else b"union"
            else:
                keyword = b"enum "
        put(&self.out, keyword)
        self.put_name(self.tag_name(id))
        return 0

    cdef int emit_struct(self, uint32_t id, int level, int depth) except -1:
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *member = record + RECORD
        cdef uint32_t vlen = vlen_of(record)
        cdef bint is_struct = kind_of(record) == BTF_KIND_STRUCT
        cdef bint packed = is_struct and self.is_packed(id, depth)
        cdef bint after_bitfield = False
        cdef int64_t end = 0
        cdef int64_t offset, align
        cdef uint32_t bits
        cdef Name name
        self.step(id, depth)
        self.check_output()
        self.emit_tag(id, NULL)
        put(&self.out, b" {")
        name.given = 1
        for _ in range(vlen):
            bits = member_bits(record, member)
            offset = member_offset(record, member)
            align = 1 if packed else self.align_of(member[1], depth)
            self.emit_padding(end, offset, align, after_bitfield and bits, level + 1)
            put(&self.out, b"\n")
            self.indent(level + 1)
            name.text = self.btf.string(member[0])
            self.emit_declaration(member[1], name, level + 1, depth + 1)
            if bits:
                put(&self.out, b": ")
                put_unsigned(&self.out, bits)
                end = offset + bits
            else:
                end = offset + 8 * self.size_of(member[1])
            after_bitfield = bits != 0
            put(&self.out, b";")
            member += MEMBER
        if is_struct:
            self.emit_padding(end, 8 * <int64_t>record[2], self.align_of(id, depth), False, level + 1)
        if vlen or record[2]:
            put(&self.out, b"\n")
            self.indent(level)
        put(&self.out, b"}")
        if packed:
            put(&self.out, b" __attribute__((packed))")
        return 0

    cdef int emit_padding(
        self, int64_t offset, int64_t next_offset, int64_t align, bint in_bitfield, int level,
    ) except -1:
        """Fill the bits between two members with unnamed bit-fields, unless alignment alone does it.

        `align` is that of the second member, in bytes. Raises what `check_output` does.
        """
        cdef const char *type
        cdef int64_t unit, aligned, gap
        cdef int i
        if offset >= next_offset:
            return 0
        # The largest type whose alignment leads into the gap.
        for i in range(4):
            type, unit = pad_type(i), self.pad_bits(i)
            aligned = round_up(offset, unit)
            if aligned <= next_offset:
                break
        if offset < aligned <= next_offset:
            # Say so only if the compiler would not get there by itself.
            if (
                in_bitfield
                or (aligned == next_offset and round_up(offset, 8 * align) != aligned)
                or (aligned != next_offset and next_offset - aligned <= aligned - offset)
            ):
                self.emit_pad(type, aligned - offset if in_bitfield else 0, level)
            offset = aligned
        while offset != next_offset:
            gap = next_offset - offset
            if gap < unit:
                # The smallest type that still takes the rest.
                for i in range(3, -1, -1):
                    type, unit = pad_type(i), self.pad_bits(i)
                    if unit >= gap:
                        break
            else:
                gap = unit
            self.emit_pad(type, gap, level)
            offset += gap
            self.check_output()
        return 0

    cdef int emit_enum(self, uint32_t id, int level) except -1:
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *item = record + RECORD
        cdef uint32_t vlen = vlen_of(record)
        cdef bint is_enum64 = kind_of(record) == BTF_KIND_ENUM64
        cdef bint is_signed = kflag_of(record)
        cdef bint word = True  # whether its size has to be asked for
        cdef uint64_t value
        cdef Name name
        self.emit_tag(id, b"enum " if record[0] else b"enum")
        if vlen == 0:
            return 0
        put(&self.out, b" {")
        for _ in range(vlen):
            name.text = self.btf.string(item[0])
            name.given = self.names.give(name.text, IDENTIFIERS)
            put(&self.out, b"\n")
            self.indent(level + 1)
            put(&self.out, name.text)
            if name.given > 1:
                put(&self.out, b"___")
                put_unsigned(&self.out, name.given)
            put(&self.out, b" = ")
            value = item[1]
            if is_enum64:
                value |= <uint64_t>item[2] << 32
                word = word and item[2] == 0
                item += ENUMERATOR64
            else:
                if is_signed:
                    value = <uint64_t><int64_t><int32_t>item[1]
                item += ENUMERATOR
            if is_signed:
                put_signed(&self.out, <int64_t>value)
            else:
                put_unsigned(&self.out, value)
            if is_enum64:
                put(&self.out, b"LL," if is_signed else b"ULL,")
            else:
                put(&self.out, b",")
        put(&self.out, b"\n")
        self.indent(level)
        put(&self.out, b"}")
        if record[2] == 1:
            put(&self.out, b" __attribute__((mode(byte)))")
        elif record[2] == 8 and self.btf.address_size == 8 and word:
            put(&self.out, b" __attribute__((mode(word)))")
        return 0

    cdef int emit_declaration(self, uint32_t id, Name name, int level, int depth) except -1:
        """Write a declaration of `name` with a type: what C reads from the inside out.

        The types from the declared thing to the one at its core go on the stack, and
        `emit_chain` takes them off again, core first.
        """
        cdef uint32_t bottom = self.stacked
        cdef const uint32_t *record
        cdef unsigned int kind
        self.step(id, depth)
        while True:
            self.push(id)
            if self.stacked - bottom > DEEPEST:
                raise self.btf.type_error(id, f"reference cycle, or more than {DEEPEST} references in a row")
            if id == 0:
                break
            record = self.btf.types[id]
            kind = kind_of(record)
            if kind == BTF_KIND_ARRAY:
                id = record[RECORD]
            elif kind == BTF_KIND_FUNC_PROTO or (kind != BTF_KIND_TYPEDEF and is_reference(kind)):
                id = record[2]
            else:
                break
        self.emit_chain(bottom, self.stacked, name, level, depth)
        self.stacked = bottom
        return 0

    cdef int emit_chain(self, uint32_t bottom, uint32_t top, Name name, int level, int depth) except -1:
        cdef bint after_pointer = True
        cdef const uint32_t *record
        cdef unsigned int kind
        cdef uint32_t id
        cdef bint nested
        while top > bottom:
            top -= 1
            id = self.stack[top]
            record = self.btf.types[id]
            kind = kind_of(record)
            if kind == BTF_KIND_PTR:
                put(&self.out, b"*" if after_pointer else b" *")
            elif kind == BTF_KIND_VOLATILE:
                put(&self.out, b" volatile")
            elif kind == BTF_KIND_CONST:
                put(&self.out, b" const")
            elif kind == BTF_KIND_RESTRICT:
                put(&self.out, b" restrict")
            elif kind == BTF_KIND_ARRAY:
                # Qualifiers of an array are those of its elements, and GCC gives them to both.
                top = self.drop_qualifiers(bottom, top)
                if top == bottom:
                    self.put_declared(name, after_pointer)
                else:
                    nested = kind_of(self.btf.types[self.stack[top - 1]]) == BTF_KIND_ARRAY
                    if name.text[0] and not after_pointer:
                        put(&self.out, b" ")
                    if not nested:
                        put(&self.out, b"(")
                    self.emit_nested(bottom, top, name, level, depth)
                    if not nested:
                        put(&self.out, b")")
                put(&self.out, b"[")
                put_unsigned(&self.out, record[RECORD + 2])
                put(&self.out, b"]")
                return 0
            elif kind == BTF_KIND_FUNC_PROTO:
                # GCC has volatile stand for noreturn, and const for functions without effects.
                top = self.drop_qualifiers(bottom, top)
                if top == bottom:
                    self.put_declared(name, after_pointer)
                else:
                    put(&self.out, b" (")
                    self.emit_nested(bottom, top, name, level, depth)
                    put(&self.out, b")")
                return self.emit_parameters(id, level, depth)
            else:
                top = self.emit_qualifiers(bottom, top)
                self.emit_core(id, level, depth)
            after_pointer = kind == BTF_KIND_PTR
        self.put_declared(name, after_pointer)
        return 0

    cdef int emit_nested(self, uint32_t bottom, uint32_t top, Name name, int level, int depth) except -1:
        self.step(self.stack[top - 1], depth + 1)
        return self.emit_chain(bottom, top, name, level, depth + 1)

    cdef int emit_core(self, uint32_t id, int level, int depth) except -1:
        """Write what declarators are put around: a type's name, or an anonymous type in full."""
        cdef const uint32_t *record = self.btf.types[id]
        cdef unsigned int kind = kind_of(record)
        if id == 0:
            put(&self.out, b"void")
        elif kind == BTF_KIND_INT or kind == BTF_KIND_FLOAT:
            put(&self.out, self.btf.string(record[0]))
        elif kind == BTF_KIND_TYPEDEF:
            self.put_name(self.identifier(id))
        elif kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            if record[0]:
                self.emit_tag(id, NULL)
            else:
                self.emit_struct(id, level, depth + 1)
        elif kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
            if record[0]:
                self.emit_tag(id, NULL)
            else:
                self.emit_enum(id, level)
        elif kind == BTF_KIND_FWD:
            self.emit_tag(id, NULL)
        elif kind == BTF_KIND_TYPE_TAG:
            put(&self.out, b" __attribute__((" if kflag_of(record) else b' __attribute__((btf_type_tag("')
            put(&self.out, self.btf.string(record[0]))
            put(&self.out, b"))" if kflag_of(record) else b'")))')
        else:
            raise self.btf.type_error(id, f"kind {kind} where C needs a type")
        return 0

    cdef int emit_parameters(self, uint32_t id, int level, int depth) except -1:
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *parameter = record + RECORD
        cdef uint32_t vlen = vlen_of(record)
        cdef uint32_t i
        cdef Name name
        if vlen == 0 or (vlen == 1 and parameter[1] == 0):
            put(&self.out, b"(void)")
            return 0
        put(&self.out, b"(")
        name.given = 1
        for i in range(vlen):
            if i:
                put(&self.out, b", ")
            if i == vlen - 1 and parameter[1] == 0:
                put(&self.out, b"...")
                break
            name.text = self.btf.string(parameter[0])
            self.emit_declaration(parameter[1], name, level, depth + 1)
            parameter += PARAM
        put(&self.out, b")")
        return 0

    cdef uint32_t emit_qualifiers(self, uint32_t bottom, uint32_t top) noexcept:
        """Write those that stand before the core; return where the stack now ends."""
        cdef unsigned int kind
        while top > bottom:
            kind = kind_of(self.btf.types[self.stack[top - 1]])
            if kind == BTF_KIND_VOLATILE:
                put(&self.out, b"volatile ")
            elif kind == BTF_KIND_CONST:
                put(&self.out, b"const ")
            elif kind == BTF_KIND_RESTRICT:
                put(&self.out, b"restrict ")
            else:
                break
            top -= 1
        return top

    cdef uint32_t drop_qualifiers(self, uint32_t bottom, uint32_t top) noexcept:
        cdef unsigned int kind
        while top > bottom:
            kind = kind_of(self.btf.types[self.stack[top - 1]])
            if kind not in (BTF_KIND_VOLATILE, BTF_KIND_CONST, BTF_KIND_RESTRICT, BTF_KIND_TYPE_TAG):
                break
            top -= 1
        return top

    cdef int push(self, uint32_t id) except -1:
        push_id(&self.stack, &self.stacked, &self.stack_room, id)
        return 0

    cdef int emit_kfuncs(self, set only) except -1:
        """Write the prototypes of kfuncs, by name; of those in `only` (type ids) if it is not None."""
        cdef uint32_t id, function
        cdef const uint32_t *record
        cdef list kfuncs = []
        cdef set fast = set()
        cdef Name name
        for id in range(1, self.btf.total):
            record = self.btf.types[id]
            if kind_of(record) != BTF_KIND_DECL_TAG or record[RECORD] != <uint32_t>-1:
                continue
            function = record[2]
            if kind_of(self.btf.types[function]) != BTF_KIND_FUNC:
                continue
            if strcmp(self.btf.string(record[0]), b"bpf_kfunc") == 0:
                if only is None or function in only:
                    kfuncs.append((<bytes>self.btf.string(self.btf.types[function][0]), function))
            elif strcmp(self.btf.string(record[0]), b"bpf_fastcall") == 0:
                fast.add(function)
        if only is not None and not kfuncs:
            return 0
        kfuncs.sort(key=by_name)
        put(&self.out, b"\n/* BPF kfuncs */\n#ifndef BPF_NO_KFUNC_PROTOTYPES\n")
        for _name, kfunc in kfuncs:
            record = self.btf.types[<uint32_t>kfunc]
            put(&self.out, b"extern ")
            if kfunc in fast:
                put(&self.out, b"__bpf_fastcall ")
            name.text = self.btf.string(record[0])
            name.given = 1
            self.emit_declaration(record[2], name, 0, 0)
            put(&self.out, b" __weak __ksym;\n")
            self.check_output()
        put(&self.out, b"#endif\n\n")
        return 0

    # Sizes and alignment.

    cdef int64_t size_of(self, uint32_t id) noexcept:
        """In bytes; 0 if it has none, or if bpftool gives up looking for it."""
        cdef const uint32_t *record
        cdef unsigned int kind
        cdef uint64_t count = 1
        cdef uint64_t size
        for _ in range(RESOLVE):
            record = self.btf.types[id]
            kind = kind_of(record)
            if kind == BTF_KIND_PTR or has_size(kind):
                size = self.btf.address_size if kind == BTF_KIND_PTR else record[2]
                return <int64_t>(count * size) if count * size <= 0xFFFFFFFF else 0
            if kind == BTF_KIND_ARRAY:
                count *= record[RECORD + 2]
                if count > 0xFFFFFFFF:
                    return 0
                id = record[RECORD]
            elif is_reference(kind):
                id = record[2]
            else:
                return 0
        return 0

    cdef int32_t align_of(self, uint32_t id, int depth) except -1:
        """In bytes; 0 if it has none."""
        cdef const uint32_t *record
        cdef const uint32_t *member
        cdef unsigned int kind
        cdef int32_t align, widest
        cdef uint32_t at = id
        while True:
            if self.states[at].align >= 0:
                return self.states[at].align
            record = self.btf.types[at]
            kind = kind_of(record)
            if kind == BTF_KIND_ARRAY:
                at = record[RECORD]
            elif kind != BTF_KIND_PTR and is_reference(kind):
                at = record[2]
            else:
                break
            self.step(at, depth)
        widest = 0
        if kind == BTF_KIND_PTR:
            widest = self.btf.address_size
        elif kind in (BTF_KIND_INT, BTF_KIND_ENUM, BTF_KIND_ENUM64, BTF_KIND_FLOAT):
            widest = min(self.btf.address_size, record[2])
        elif kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            self.step(at, depth)
            widest = 1
            member = record + RECORD
            for _ in range(vlen_of(record)):
                align = self.align_of(member[1], depth + 1)
                if align == 0:
                    widest = 0
                    break
                widest = max(widest, align)
                # Off its natural place: then the whole must be packed.
                if member_bits(record, member) == 0 and member[2] % (8 * <uint32_t>align):
                    widest = 1
                    break
                member += MEMBER
            if widest and record[2] % <uint32_t>widest:
                widest = 1
        self.states[at].align = widest
        self.states[id].align = widest
        return widest

    cdef bint is_packed(self, uint32_t id, int depth) except -1:
        """Whether a struct needs the attribute: a member off its natural place, or a size that alignment rules out."""
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *member = record + RECORD
        cdef int32_t align
        cdef int32_t widest = 1
        for _ in range(vlen_of(record)):
            align = self.align_of(member[1], depth)
            if align and member_bits(record, member) == 0 and member[2] % (8 * <uint32_t>align):
                return True
            widest = max(widest, align)
            member += MEMBER
        return record[2] % <uint32_t>widest != 0

    cdef int64_t pad_bits(self, int which) noexcept:
        return self.btf.address_size * 8 if which == 0 else 32 >> (which - 1)

    # Names.

    cdef Name tag_name(self, uint32_t id) except *:
        return self.named(id, TAGS)

    cdef Name identifier(self, uint32_t id) except *:
        return self.named(id, IDENTIFIERS)

    cdef Name named(self, uint32_t id, int space) except *:
        """The name that a type has in this header: its own, made unique at its first use."""
        cdef const uint32_t *record = self.btf.types[id]
        cdef TypeState *state = &self.states[id]
        cdef unsigned int kind
        cdef Name name
        name.text = self.btf.string(record[0])
        name.given = 1
        if record[0] == 0:
            name.text = b""
            return name
        if state.given == 0:
            kind = kind_of(record)
            if kind == BTF_KIND_FWD or (kind == BTF_KIND_ENUM and vlen_of(record) == 0):
                state.given = 1  # declares what another type defines
            else:
                state.given = self.names.give(name.text, space)
        name.given = state.given
        return name

    cdef int put_name(self, Name name) noexcept:
        cdef uint64_t start = self.out.size
        put(&self.out, name.text)
        if name.given > 1:
            put(&self.out, b"___")
            put_unsigned(&self.out, name.given)
            if self.out.size - start > NAME_MAX:
                self.out.size = start + NAME_MAX
        return 0

    cdef int put_declared(self, Name name, bint after_pointer) noexcept:
        if name.text[0] and not after_pointer:
            put(&self.out, b" ")
        return self.put_name(name)

    cdef int indent(self, int level) noexcept:
        put_bytes(&self.out, TABS, min(level, <int>TABS_MAX))
        return 0

    cdef int emit_pad(self, const char *type, int64_t bits, int level) noexcept:
        put(&self.out, b"\n")
        self.indent(level)
        put(&self.out, type)
        put(&self.out, b": ")
        put_signed(&self.out, bits)
        put(&self.out, b";")
        return 0


cdef inline bint is_reference(unsigned int kind) noexcept nogil:
    """Whether a type of this kind is another one, pointed to, qualified, or renamed."""
    return kind in (
        BTF_KIND_PTR, BTF_KIND_TYPEDEF, BTF_KIND_VOLATILE, BTF_KIND_CONST, BTF_KIND_RESTRICT, BTF_KIND_TYPE_TAG,
    )


cdef inline bint has_size(unsigned int kind) noexcept nogil:
    return kind in (
        BTF_KIND_INT, BTF_KIND_STRUCT, BTF_KIND_UNION, BTF_KIND_ENUM, BTF_KIND_ENUM64, BTF_KIND_FLOAT,
    )


cdef inline int64_t round_up(int64_t value, int64_t unit) noexcept nogil:
    return (value + unit - 1) // unit * unit if unit else value


cdef int push_id(uint32_t **ids, uint32_t *count, uint32_t *room, uint32_t id) except -1:
    cdef void *moved
    if count[0] == room[0]:
        room[0] = room[0] * 2 + 64
        moved = realloc(ids[0], room[0] * sizeof(uint32_t))
        if moved == NULL:
            raise MemoryError
        ids[0] = <uint32_t *>moved
    ids[0][count[0]] = id
    count[0] += 1
    return 0


cdef inline const char *pad_type(int which) noexcept nogil:
    if which == 0:
        return b"long"
    if which == 1:
        return b"int"
    return b"short" if which == 2 else b"char"


def by_name(entry):
    return entry[0]
