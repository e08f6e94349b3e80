# SPDX-License-Identifier: GPL-2.0-only
"""Read raw BTF, in either byte order, whole or split from a base.

One pass over the types finds where each record starts, a second checks what it
refers to; both are linear, and nothing is allocated beyond a copy of the input
and one pointer for each type.  The byte order of the file goes away here: types
consist of 32-bit words only, so that swapping them needs no knowledge of kinds.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, strcmp

cdef extern from "<string.h>" nogil:
    size_t strnlen(const char *text, size_t most)

from btfstep.btf.constants cimport (
    BTF_KIND_ARRAY,
    BTF_KIND_CONST,
    BTF_KIND_DATASEC,
    BTF_KIND_DECL_TAG,
    BTF_KIND_ENUM,
    BTF_KIND_ENUM64,
    BTF_KIND_FUNC,
    BTF_KIND_FUNC_PROTO,
    BTF_KIND_INT,
    BTF_KIND_PTR,
    BTF_KIND_RESTRICT,
    BTF_KIND_STRUCT,
    BTF_KIND_TYPE_TAG,
    BTF_KIND_TYPEDEF,
    BTF_KIND_UNION,
    BTF_KIND_VAR,
    BTF_KIND_VOLATILE,
    BTF_MAGIC,
    BTF_MAX_TYPE,
    BTF_VERSION,
)

import sys

from btfstep.errors import FormatError

cdef enum:
    HEADER = 24  # bytes, up to and with str_len
    HEADER_LAYOUT = 32  # with layout_off and layout_len
    LAYOUT = 4  # bytes for each kind: size of the fixed part, of an element, flags

cdef uint32_t[3] VOID
VOID[0] = VOID[1] = VOID[2] = 0

KINDS = (
    "UNKNOWN", "INT", "PTR", "ARRAY", "STRUCT", "UNION", "ENUM", "FWD", "TYPEDEF", "VOLATILE", "CONST", "RESTRICT",
    "FUNC", "FUNC_PROTO", "VAR", "DATASEC", "FLOAT", "DECL_TAG", "TYPE_TAG", "ENUM64",
)  # fmt: skip

# Compilers spell the type in any of these orders. Its size is that of a pointer.
LONG_NAMES = (
    b"long", b"long int", b"int long",
    b"unsigned long", b"long unsigned", b"unsigned long int", b"unsigned int long", b"long unsigned int",
    b"long int unsigned", b"int unsigned long", b"int long unsigned",
)  # fmt: skip


cdef class BtfReader:
    """BTF that was read and checked.

    `data` is what a ``.BTF`` section or a file of raw BTF holds; it is copied.
    `base` is what split BTF was split from. `path` and `section` are for
    messages, `address_size` is that of the ELF file if there is one (0: find
    out from the types, and if they do not tell, take this machine's).

    Raises FormatError if any record, type id, or string is not where it says.
    """

    def __init__(self, data, base=None, *, path=None, section=None, address_size=0):
        cdef const unsigned char[::1] view = data
        self.base = base
        self.path = path
        self.section = section
        self.parse(&view[0] if view.shape[0] else NULL, view.shape[0])
        self.address_size = address_size or self.guess_address_size()

    def __dealloc__(self):
        free(self.types)
        free(self.words)

    def __len__(self):
        """The number of types, the base's and void included: one more than the largest id."""
        return self.total

    def name(self, id):
        """The name of a type, as bytes; empty if it has none. Raises IndexError if there is no such type."""
        if not 0 <= id < self.total:
            raise IndexError(f"no type {id}")
        return <bytes>self.string(self.types[<uint32_t>id][0])

    def text_at(self, offset):
        """The string at an offset, as bytes. Raises IndexError if there is none."""
        if not 0 <= offset < self.text_end:
            raise IndexError(f"no string at {offset}")
        return <bytes>self.string(offset)

    @property
    def text_size(self):
        """The bytes of strings, the base's included: one more than the largest string offset."""
        return self.text_end

    def find(self, bytes name):
        """The ids of all types of this name, in order."""
        cdef const char *wanted = name
        cdef uint32_t id
        return [id for id in range(1, self.total) if strcmp(self.string(self.types[id][0]), wanted) == 0]

    def find_all(self, names):
        """The ids of all types of each of these names, in order: ``{name: [id, ...]}``.

        Raises FormatError if names of types overlap so much that it would take forever to look at them.
        """
        cdef uint64_t work = (<uint64_t>1 << 30) + self.text_end
        cdef size_t longest = max(map(len, names), default=0)
        cdef size_t length
        cdef const char *text
        cdef uint32_t id
        found = {name: [] for name in names}
        for id in range(1, self.total):
            text = self.string(self.types[id][0])
            length = strnlen(text, longest + 1)
            if length > work:
                raise self.error("names of types overlap too much")
            work -= length
            if length <= longest:
                ids = found.get(text[:length])
                if ids is not None:
                    ids.append(id)
        return found

    def kind(self, id):
        """The number of a type's kind. Raises IndexError if there is no such type."""
        if not 0 <= id < self.total:
            raise IndexError(f"no type {id}")
        return kind_of(self.types[<uint32_t>id])

    def record(self, id):
        """The record of a type: ``(name_off, kind, vlen, kind_flag, size_or_type, rest)``.

        `rest` is a tuple of 32-bit words: what the kind adds. Raises IndexError
        if there is no such type.
        """
        cdef const uint32_t *record
        cdef int64_t words, i
        if not 0 <= id < self.total:
            raise IndexError(f"no type {id}")
        record = self.types[<uint32_t>id]
        words = self.record_words(id, record) if id else RECORD
        rest = tuple([record[i] for i in range(RECORD, words)])
        return record[0], kind_of(record), vlen_of(record), bool(kflag_of(record)), record[2], rest

    cdef const char *string(self, uint32_t offset) noexcept:
        cdef BtfReader reader = self
        while offset < reader.text_start:
            reader = reader.base
        return reader.text + (offset - reader.text_start)

    cdef object error(self, str message):
        return FormatError(message, path=self.path, section=self.section)

    cdef object type_error(self, uint32_t id, str message):
        return self.error(f"type [{id}]: {message}")

    cdef int parse(self, const unsigned char *data, uint64_t size) except -1:
        cdef uint32_t[8] header
        cdef uint32_t header_size, i
        cdef uint32_t type_off, type_len, str_off, str_len, layout_off, layout_len
        cdef uint64_t room
        cdef bint swapped
        if size < HEADER:
            raise self.error(f"BTF of {size} bytes, less than its header")
        if size > 0xFFFFFFFF:
            raise self.error("BTF of 4 GiB or more")
        # The first word is magic (2 bytes), version, flags.
        if data[0] == (BTF_MAGIC & 0xFF) and data[1] == (BTF_MAGIC >> 8):
            self.big_endian = False
        elif data[1] == (BTF_MAGIC & 0xFF) and data[0] == (BTF_MAGIC >> 8):
            self.big_endian = True
        else:
            raise self.error("is not BTF: does not start with its magic number")
        if data[2] != BTF_VERSION:
            raise self.error(f"BTF version {data[2]}; only {BTF_VERSION} is known")
        swapped = self.big_endian != (sys.byteorder == "big")
        for i in range(8):
            header[i] = 0
        memcpy(header, data, HEADER)
        header_size = swap32(header[1]) if swapped else header[1]
        if header_size < HEADER or header_size > size:
            raise self.error(f"BTF header of {header_size} bytes in {size}")
        memcpy(header, data, min(header_size, <uint32_t>HEADER_LAYOUT))
        if swapped:
            for i in range(8):
                header[i] = swap32(header[i])
        type_off, type_len, str_off, str_len = header[2], header[3], header[4], header[5]
        layout_off, layout_len = header[6], header[7]
        data += header_size
        room = size - header_size
        if <uint64_t>str_off + str_len > room:
            raise self.error(f"strings at {str_off:#x}, {str_len} bytes: past the end of the BTF")
        if <uint64_t>type_off + type_len > str_off:
            raise self.error(f"types at {type_off:#x}, {type_len} bytes: not before the strings at {str_off:#x}")
        if type_off % 4 or type_len % 4:
            raise self.error(f"types at {type_off:#x}, {type_len} bytes: not a multiple of 4")
        if layout_len:
            if layout_off % 4 or layout_len % LAYOUT:
                raise self.error(f"layouts at {layout_off:#x}, {layout_len} bytes: not a multiple of 4")
            if layout_off < <uint64_t>type_off + type_len or <uint64_t>layout_off + layout_len > str_off:
                raise self.error(f"layouts at {layout_off:#x}, {layout_len} bytes: not between types and strings")
            self.layout = data[layout_off : layout_off + layout_len]

        self.parse_strings(data[str_off : str_off + str_len])
        self.words = <uint32_t *>malloc(type_len + 4)
        if self.words == NULL:
            raise MemoryError
        memcpy(self.words, data + type_off, type_len)
        self.word_count = type_len // 4
        if swapped:
            for i in range(type_len // 4):
                self.words[i] = swap32(self.words[i])
        self.parse_types(type_len)
        for i in range(self.start_id, self.total):
            self.check_type(i)
        return 0

    cdef int parse_strings(self, bytes strings) except -1:
        self.strings = strings
        self.text = strings
        if self.base is not None:
            self.text_start = self.base.text_end
            self.layout = self.layout or self.base.layout
        if <uint64_t>self.text_start + len(strings) > 0xFFFFFFFF:
            raise self.error("strings of base and split BTF together take 4 GiB or more")
        self.text_end = self.text_start + <uint32_t>len(strings)
        if self.base is not None and not strings:
            return 0
        if not strings or strings[len(strings) - 1] != 0:
            raise self.error("strings do not end with a null byte")
        if self.base is None and strings[0] != 0:
            raise self.error("strings do not start with a null byte: is this split BTF? then give its base")
        return 0

    cdef int parse_types(self, uint32_t length) except -1:
        cdef uint64_t at = 0
        cdef uint64_t most = self.word_count // RECORD
        cdef int64_t words
        cdef uint32_t id = 1
        cdef void *shrunk
        if self.base is not None:
            id = self.base.total
        if id + most > BTF_MAX_TYPE:
            raise self.error("too many types")
        self.start_id = id
        self.types = <const uint32_t **>malloc(<size_t>((id + most) * sizeof(uint32_t *)))
        if self.types == NULL:
            raise MemoryError
        self.types[0] = VOID
        if self.base is not None:
            memcpy(self.types, self.base.types, id * sizeof(uint32_t *))
        while at < self.word_count:
            if self.word_count - at < RECORD:
                raise self.type_error(id, f"{(self.word_count - at) * 4} bytes left, which is no type")
            words = self.record_words(id, self.words + at)
            if <uint64_t>words > self.word_count - at:
                raise self.type_error(
                    id,
                    f"{kind_name(self.words + at)} of {words * 4} bytes, with {(self.word_count - at) * 4} left",
                )
            self.types[id] = self.words + at
            at += <uint64_t>words
            id += 1
        self.total = id
        shrunk = realloc(self.types, id * sizeof(uint32_t *))
        if shrunk != NULL:
            self.types = <const uint32_t **>shrunk
        return 0

    cdef int64_t record_words(self, uint32_t id, const uint32_t *record) except -1:
        """The length of a record in words, as its own first three words have it."""
        cdef unsigned int kind = kind_of(record)
        cdef int64_t vlen = vlen_of(record)
        cdef unsigned int fixed, element
        if kind in (BTF_KIND_STRUCT, BTF_KIND_UNION, BTF_KIND_ENUM64, BTF_KIND_DATASEC):
            return RECORD + 3 * vlen
        if kind in (BTF_KIND_ENUM, BTF_KIND_FUNC_PROTO):
            return RECORD + 2 * vlen
        if kind == BTF_KIND_ARRAY:
            return RECORD + 3
        if kind in (BTF_KIND_INT, BTF_KIND_VAR, BTF_KIND_DECL_TAG):
            return RECORD + 1
        if 0 < kind <= KIND_MAX:
            return RECORD
        # A kind of a later format. What wrote it may have said how long such records are.
        if self.layout is None or kind * LAYOUT >= len(self.layout):
            raise self.type_error(id, f"unknown kind {kind}, and no layout section that describes it")
        fixed = self.layout[kind * LAYOUT]
        element = self.layout[kind * LAYOUT + 1]
        if fixed % 4 or element % 4:
            raise self.type_error(id, f"unknown kind {kind}, whose layout is not a multiple of 4 bytes")
        return RECORD + fixed // 4 + vlen * (element // 4)

    cdef int check_id(self, uint32_t id, uint32_t referenced) except -1:
        if referenced >= self.total:
            raise self.type_error(id, f"refers to type {referenced}, and there are {self.total}")
        return 0

    cdef int check_name(self, uint32_t id, uint32_t offset) except -1:
        if offset >= self.text_end:
            raise self.type_error(id, f"string offset {offset:#x} past the {self.text_end} bytes of strings")
        return 0

    cdef int check_type(self, uint32_t id) except -1:
        cdef const uint32_t *record = self.types[id]
        cdef const uint32_t *part = record + RECORD
        cdef unsigned int kind = kind_of(record)
        cdef uint32_t vlen = vlen_of(record)
        self.check_name(id, record[0])
        if kind in (BTF_KIND_STRUCT, BTF_KIND_UNION):
            for _ in range(vlen):
                self.check_name(id, part[0])
                self.check_id(id, part[1])
                part += MEMBER
        elif kind == BTF_KIND_FUNC_PROTO:
            self.check_id(id, record[2])
            for _ in range(vlen):
                self.check_name(id, part[0])
                self.check_id(id, part[1])
                part += PARAM
        elif kind == BTF_KIND_ENUM:
            for _ in range(vlen):
                self.check_name(id, part[0])
                part += ENUMERATOR
        elif kind == BTF_KIND_ENUM64:
            for _ in range(vlen):
                self.check_name(id, part[0])
                part += ENUMERATOR64
        elif kind == BTF_KIND_DATASEC:
            for _ in range(vlen):
                self.check_id(id, part[0])
                part += SECINFO
        elif kind == BTF_KIND_ARRAY:
            self.check_id(id, part[0])
            self.check_id(id, part[1])
        elif kind in (
            BTF_KIND_PTR, BTF_KIND_TYPEDEF, BTF_KIND_VOLATILE, BTF_KIND_CONST, BTF_KIND_RESTRICT, BTF_KIND_VAR,
            BTF_KIND_DECL_TAG, BTF_KIND_TYPE_TAG,
        ):
            self.check_id(id, record[2])
        elif kind == BTF_KIND_FUNC:
            self.check_id(id, record[2])
            if kind_of(self.types[record[2]]) != BTF_KIND_FUNC_PROTO:
                raise self.type_error(id, f"FUNC whose type {record[2]} is no FUNC_PROTO")
        return 0

    cdef uint32_t guess_address_size(self) except 0:
        cdef uint32_t id
        cdef const uint32_t *record
        if self.base is not None and self.base.address_size:
            return self.base.address_size
        for id in range(1, self.total):
            record = self.types[id]
            if kind_of(record) != BTF_KIND_INT or record[2] not in (4, 8):
                continue
            if self.string(record[0])[0] in b"iul" and <bytes>self.string(record[0]) in LONG_NAMES:
                return record[2]
        return sizeof(void *)


cdef inline uint32_t swap32(uint32_t value) noexcept nogil:
    return value >> 24 | (value >> 8) & 0xFF00 | (value << 8) & 0xFF0000 | value << 24


cdef str kind_name(const uint32_t *record):
    cdef unsigned int kind = kind_of(record)
    return KINDS[kind] if kind <= KIND_MAX else f"kind {kind}"
