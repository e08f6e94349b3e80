# SPDX-License-Identifier: GPL-2.0-only
"""Write types one by one: the text of ``bpftool btf dump`` with ``format raw``, ``-j``, and ``-p``.

The two forms say the same, field by field, so one walk writes both.  Strings
are escaped as bpftool does it: control characters other than the common ones,
and bytes that are no UTF-8, stay as they are.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

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
from btfstep.btf.output cimport (
    FULL,
    Output,
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
    KIND_MAX,
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

# A member takes 12 bytes, and some 120 of indented JSON. Strings may be used
# any number of times; a file whose text exceeds this is made for that.
cdef uint64_t OUTPUT_MIN = 64 << 20
cdef uint64_t OUTPUT_RATIO = 64

cdef const char **KIND_NAMES = [
    b"UNKNOWN", b"INT", b"PTR", b"ARRAY", b"STRUCT", b"UNION", b"ENUM", b"FWD", b"TYPEDEF", b"VOLATILE", b"CONST",
    b"RESTRICT", b"FUNC", b"FUNC_PROTO", b"VAR", b"DATASEC", b"FLOAT", b"DECL_TAG", b"TYPE_TAG", b"ENUM64",
]


def raw(BtfReader btf, roots=()):
    """The raw text of BTF, as bytes: of its own types, or of `roots` (type ids, in this order).

    Raises FormatError if it were endless, IndexError if there is no such root.
    """
    return RawDumper(btf, False, False).dump(roots)


def json(BtfReader btf, roots=(), *, pretty=False):
    """The same as JSON, on one line or, `pretty`, indented; it ends with a line break. Raises as `raw`."""
    return RawDumper(btf, True, pretty).dump(roots)


cdef class RawDumper:
    cdef BtfReader btf
    cdef Output out
    cdef bint as_json
    cdef bint pretty
    cdef int depth  # of JSON objects and arrays
    cdef bint empty  # nothing is in the innermost one yet

    def __cinit__(self, BtfReader btf, bint as_json, bint pretty):
        self.btf = btf
        self.as_json = as_json
        self.pretty = pretty
        self.empty = True
        init_output(&self.out, OUTPUT_MIN + OUTPUT_RATIO * (btf.text_end + 4 * btf.word_count + btf.total))

    def __dealloc__(self):
        free_output(&self.out)

    cdef bytes dump(self, roots):
        cdef uint32_t id
        for root in roots:
            if not 0 <= root < self.btf.total:
                raise IndexError(f"no type {root}")
        self.begin(b"{")
        self.name(b"types")
        self.begin(b"[")
        if roots:
            for root in roots:
                self.type(root)
        else:
            for id in range(self.btf.start_id, self.btf.total):
                self.type(id)
        self.end(b"]")
        self.end(b"}")
        if self.as_json:
            put(&self.out, b"\n")
        return self.out.data[: self.out.size] if self.out.size else b""

    cdef int type(self, uint32_t id) except -1:
        cdef const uint32_t *record = self.btf.types[id]
        cdef const uint32_t *part = record + RECORD
        cdef unsigned int kind = kind_of(record)
        cdef uint32_t vlen = vlen_of(record)
        self.begin(b"{")
        if self.as_json:
            self.unsigned(b"id", id)
            self.string(b"kind", KIND_NAMES[kind if kind <= KIND_MAX else 0])
            self.string(b"name", self.text(record[0]))
        else:
            put(&self.out, b"[")
            put_unsigned(&self.out, id)
            put(&self.out, b"] ")
            self.kind_and_name(record)
        if kind == BTF_KIND_INT:
            self.unsigned(b"size", record[2])
            self.unsigned(b"bits_offset", part[0] >> 16 & 0xFF)
            self.unsigned(b"nr_bits", part[0] & 0xFF)
            self.string(b"encoding", int_encoding(part[0] >> 24 & 0xF))
        elif kind in (
            BTF_KIND_PTR, BTF_KIND_CONST, BTF_KIND_VOLATILE, BTF_KIND_RESTRICT, BTF_KIND_TYPEDEF, BTF_KIND_TYPE_TAG,
        ):
            self.unsigned(b"type_id", record[2])
        elif kind == BTF_KIND_ARRAY:
            self.unsigned(b"type_id", part[0])
            self.unsigned(b"index_type_id", part[1])
            self.unsigned(b"nr_elems", part[2])
        elif kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION:
            self.unsigned(b"size", record[2])
            self.start_list(b"members", vlen)
            for _ in range(vlen):
                self.start_item(part[0])
                self.unsigned(b"type_id", part[1])
                self.unsigned(b"bits_offset", member_offset(record, part))
                if member_bits(record, part):
                    self.unsigned(b"bitfield_size", member_bits(record, part))
                self.end(b"}")
                part += MEMBER
            self.end(b"]")
        elif kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64:
            self.string(b"encoding", b"SIGNED" if kflag_of(record) else b"UNSIGNED")
            self.unsigned(b"size", record[2])
            self.start_list(b"values", vlen)
            for _ in range(vlen):
                self.enumerator(part, kind == BTF_KIND_ENUM64, kflag_of(record))
                part += ENUMERATOR64 if kind == BTF_KIND_ENUM64 else ENUMERATOR
            self.end(b"]")
        elif kind == BTF_KIND_FWD:
            self.string(b"fwd_kind", b"union" if kflag_of(record) else b"struct")
        elif kind == BTF_KIND_FUNC:
            self.unsigned(b"type_id", record[2])
            self.string(b"linkage", linkage(vlen))
        elif kind == BTF_KIND_FUNC_PROTO:
            self.unsigned(b"ret_type_id", record[2])
            self.start_list(b"params", vlen)
            for _ in range(vlen):
                self.start_item(part[0])
                self.unsigned(b"type_id", part[1])
                self.end(b"}")
                part += PARAM
            self.end(b"]")
        elif kind == BTF_KIND_VAR:
            self.unsigned(b"type_id", record[2])
            if not self.as_json:
                put(&self.out, b",")
            self.string(b"linkage", linkage(part[0]))
        elif kind == BTF_KIND_DATASEC:
            self.unsigned(b"size", record[2])
            self.start_list(b"vars", vlen)
            for _ in range(vlen):
                self.variable(part)
                part += SECINFO
            self.end(b"]")
        elif kind == BTF_KIND_FLOAT:
            self.unsigned(b"size", record[2])
        elif kind == BTF_KIND_DECL_TAG:
            self.unsigned(b"type_id", record[2])
            self.signed(b"component_idx", <int32_t>part[0])
        self.end(b"}")
        if not self.as_json:
            put(&self.out, b"\n")
        if self.out.failed == FULL:
            raise self.btf.type_error(id, f"text of more than {self.out.limit >> 20} MiB, up to here")
        if self.out.failed:
            raise MemoryError
        return 0

    cdef int enumerator(self, const uint32_t *item, bint is_enum64, bint is_signed) noexcept:
        cdef int64_t value = <int32_t>item[1]
        self.start_item(item[0])
        if is_enum64:
            value = <int64_t>(item[1] | <uint64_t>item[2] << 32)
        elif not is_signed and not self.as_json:
            value = item[1]  # in JSON, bpftool extends the sign all the same
        if is_signed:
            self.signed(b"val", value)
        else:
            self.unsigned(b"val", <uint64_t>value)
        if is_enum64 and not self.as_json:
            if is_signed:
                put(&self.out, b"LL")
            else:
                put(&self.out, b"ULL")
        self.end(b"}")
        return 0

    cdef int variable(self, const uint32_t *item) noexcept:
        self.begin(b"{")
        if not self.as_json:
            put(&self.out, b"\n\ttype_id=")
            put_unsigned(&self.out, item[0])
        else:
            self.unsigned(b"type_id", item[0])
        self.unsigned(b"offset", item[1])
        self.unsigned(b"size", item[2])
        if not self.as_json:
            put(&self.out, b" (")
            self.kind_and_name(self.btf.types[item[0]])
            put(&self.out, b")")
        self.end(b"}")
        return 0

    cdef int kind_and_name(self, const uint32_t *record) noexcept:
        cdef unsigned int kind = kind_of(record)
        put(&self.out, KIND_NAMES[kind if kind <= KIND_MAX else 0])
        put(&self.out, b" '")
        put(&self.out, self.text(record[0]))
        put(&self.out, b"'")
        return 0

    cdef const char *text(self, uint32_t offset) noexcept:
        if offset == 0:
            return b"(anon)"
        return self.btf.string(offset)

    cdef int start_list(self, const char *name, uint32_t vlen) noexcept:
        self.unsigned(b"vlen", vlen)
        self.name(name)
        self.begin(b"[")
        return 0

    cdef int start_item(self, uint32_t name_off) noexcept:
        self.begin(b"{")
        if self.as_json:
            self.string(b"name", self.text(name_off))
            return 0
        put(&self.out, b"\n\t'")
        put(&self.out, self.text(name_off))
        put(&self.out, b"'")
        return 0

    # A field, in either form.

    cdef int field(self, const char *name) noexcept:
        if self.as_json:
            return self.name(name)
        put(&self.out, b" ")
        put(&self.out, name)
        put(&self.out, b"=")
        return 0

    cdef int unsigned(self, const char *name, uint64_t value) noexcept:
        self.field(name)
        put_unsigned(&self.out, value)
        self.empty = False
        return 0

    cdef int signed(self, const char *name, int64_t value) noexcept:
        self.field(name)
        put_signed(&self.out, value)
        self.empty = False
        return 0

    cdef int string(self, const char *name, const char *value) noexcept:
        if self.out.failed:
            return 0  # names that overlap may come to more than anybody can wait for
        self.field(name)
        if self.as_json:
            self.quote(value)
        else:
            put(&self.out, value)
        return 0

    # What only JSON has; nothing is written otherwise.

    cdef int begin(self, const char *bracket) noexcept:
        if self.as_json:
            if not self.empty:
                put(&self.out, b",")
            put(&self.out, bracket)
            self.depth += 1
            self.empty = True
        return 0

    cdef int end(self, const char *bracket) noexcept:
        if self.as_json:
            self.depth -= 1
            if not self.empty:
                self.line()
            put(&self.out, bracket)
            self.empty = False
        return 0

    cdef int name(self, const char *name) noexcept:
        if self.as_json:
            if not self.empty:
                put(&self.out, b",")
            self.line()
            self.quote(name)
            put(&self.out, b": " if self.pretty else b":")
            self.empty = True  # the value follows, without a comma
        return 0

    cdef int line(self) noexcept:
        if self.pretty:
            put(&self.out, b"\n")
            for _ in range(self.depth):
                put(&self.out, b"    ")
        return 0

    cdef int quote(self, const char *text) noexcept:
        cdef const char *start = text
        cdef const char *escape
        put(&self.out, b'"')
        while text[0]:
            escape = escaped(text[0])
            if escape != NULL:
                put_bytes(&self.out, start, text - start)
                put(&self.out, escape)
                start = text + 1
            text += 1
        put_bytes(&self.out, start, text - start)
        put(&self.out, b'"')
        self.empty = False
        return 0


cdef inline const char *escaped(char letter) noexcept nogil:
    if letter == c"\t":
        return b"\\t"
    if letter == c"\n":
        return b"\\n"
    if letter == c"\r":
        return b"\\r"
    if letter == c"\f":
        return b"\\f"
    if letter == c"\b":
        return b"\\b"
    if letter == c"\\":
        return b"\\\\"
    if letter == c'"':
        return b'\\"'
    return NULL


cdef const char *int_encoding(unsigned int encoding) noexcept nogil:
    if encoding == 0:
        return b"(none)"
    if encoding == 1:
        return b"SIGNED"
    if encoding == 2:
        return b"CHAR"
    return b"BOOL" if encoding == 4 else b"UNKN"


cdef const char *linkage(uint32_t code) noexcept nogil:
    if code == 0:
        return b"static"
    if code == 1:
        return b"global"
    return b"extern" if code == 2 else b"(unknown)"
