# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only: entries are read below `count`, which the section's size bounds)
"""Reads symbol tables; see `symbols.pxd`."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memchr, memcmp, memset, strchr, strlen, strstr

from btfstep.btf.memory cimport reserve
from btfstep.dwarf.cursor cimport Cursor, cursor_set, load_u32, read_u8, read_u16, read_u32, read_u64
from btfstep.errors import FormatError

cdef enum:
    SHN_XINDEX = 0xFFFF
    SHT_SYMTAB_SHNDX = 18
    # Names may lie within one another, so a small table can hold any length of
    # them; real ones come to about the size of the tables, which are read a few times.
    MAX_NAME = 1 << 16
    FREE_WORK = 1 << 26
    MAX_READS = 64


cdef int by_name(const void *a, const void *b) noexcept nogil:
    """By name up to the dot, then by place in the table."""
    cdef const Symbol *x = <const Symbol *>a
    cdef const Symbol *y = <const Symbol *>b
    cdef uint32_t length = min(x.name_length, y.name_length)
    cdef int order
    if x.start != y.start:
        return -1 if x.start < y.start else 1
    order = memcmp(x.name, y.name, length)
    if order:
        return order
    if x.name_length != y.name_length:
        return -1 if x.name_length < y.name_length else 1
    return (x.index > y.index) - (x.index < y.index)


cdef uint64_t name_start(const Symbol *symbol) noexcept nogil:
    """The name's first eight bytes, as a number that compares as they do."""
    cdef uint64_t start = 0
    cdef uint32_t i
    for i in range(8):
        start = start << 8 | (symbol.name[i] if i < symbol.name_length else 0)
    return start


cdef bint same_function(const Symbol *x, const Symbol *y) noexcept nogil:
    return x.name_length == y.name_length and memcmp(x.name, y.name, x.name_length) == 0


cdef class SymbolTable:
    """The table named ``.symtab`` of `image`, an ElfImage.

    Raises FormatError when it is malformed.  A file without one has `count` 0.
    """

    def __cinit__(self, object image):
        cdef const unsigned char[::1] symtab_view, strtab_view, index_view
        section = image.section(".symtab")
        self.path = image.path
        self.is64 = image.is64
        self.big = image.big_endian
        if section is None:
            return
        entry = 24 if self.is64 else 16
        if section.entsize not in (0, entry):
            raise FormatError(f"symbols of {section.entsize} bytes", path=self.path, section=".symtab")
        if not 0 < section.link < len(image.sections):
            raise FormatError("symbol table without a string table", path=self.path, section=".symtab")
        symtab = image.contents(section)
        strtab = image.contents(image.sections[section.link])
        if len(symtab) // entry >= 0x7FFFFFFF:
            raise FormatError("too many symbols", path=self.path, section=".symtab")
        if len(symtab):
            symtab_view = symtab
            self._symtab_view = symtab_view
            self.symtab = &symtab_view[0]
            self.symtab_size = len(symtab)
        if len(strtab):
            strtab_view = strtab
            self._strtab_view = strtab_view
            self.strtab = &strtab_view[0]
            self.strtab_size = len(strtab)
        self.count = <uint32_t>(self.symtab_size // <uint64_t>entry)
        self.work = FREE_WORK + MAX_READS * (self.symtab_size + self.strtab_size)
        for extended in image.sections:
            if extended.type == SHT_SYMTAB_SHNDX and extended.link == section.index:
                indices = image.contents(extended)
                if len(indices):
                    index_view = indices
                    self._index_view = index_view
                    self.indices = &index_view[0]
                    self.indices_size = len(indices)
                break

    def __dealloc__(self):
        free(self.symbols)
        free(self.functions)

    cdef bint read(self, uint32_t index, Symbol *symbol) noexcept nogil:
        """Read an entry below `count`; False when its name is not a string of the table."""
        cdef Cursor c
        cdef uint32_t name
        cdef uint64_t left
        cdef const uint8_t *nul
        cursor_set(&c, self.symtab, self.symtab_size, <uint64_t>index * (24 if self.is64 else 16), self.big)
        name = read_u32(&c)
        if self.is64:
            symbol.type = read_u8(&c) & 0xF
            read_u8(&c)
            symbol.section = read_u16(&c)
            symbol.value = read_u64(&c)
            symbol.size = read_u64(&c)
        else:
            symbol.value = read_u32(&c)
            symbol.size = read_u32(&c)
            symbol.type = read_u8(&c) & 0xF
            read_u8(&c)
            symbol.section = read_u16(&c)
        if symbol.section == SHN_XINDEX:
            if <uint64_t>index * 4 + 4 <= self.indices_size:
                symbol.section = load_u32(self.indices + <uint64_t>index * 4, self.big)
        symbol.index = index
        if c.failed or name >= self.strtab_size:
            return False
        symbol.name = self.strtab + name
        left = min(self.strtab_size - name, <uint64_t>MAX_NAME)
        nul = <const uint8_t *>memchr(symbol.name, 0, <size_t>left)
        if nul == NULL:
            return False
        left = <uint64_t>(nul - symbol.name)
        if left > self.work:
            self.exhausted = True
            return False
        self.work -= left
        return True

    cdef int check(self) except -1:
        """Raise what `read` cannot; called after each pass over the table."""
        if self.exhausted:
            raise FormatError("names lie within one another, to an absurd length", path=self.path, section=".symtab")
        return 0

    def collect_functions(self) -> None:
        """Gather the functions; parts that compilers split off (``.cold``, ``.part``) are none."""
        cdef uint32_t i, n, first
        cdef Symbol symbol
        cdef const char *dot
        cdef ElfFunction *f
        for i in range(self.count):
            if not self.read(i, &symbol) or symbol.type != STT_FUNC_TYPE:
                continue
            dot = strchr(<const char *>symbol.name, 46)  # a dot
            if dot != NULL:
                if strstr(dot, ".cold") != NULL or strstr(dot, ".part") != NULL:
                    continue
                symbol.name_length = <uint32_t>(dot - <const char *>symbol.name)
            else:
                symbol.name_length = <uint32_t>strlen(<const char *>symbol.name)
            if symbol.name_length == 0:
                continue
            symbol.start = name_start(&symbol)
            symbol.optimized = dot != NULL and (strstr(dot, ".constprop") != NULL or strstr(dot, ".isra") != NULL)
            if reserve(<void **>&self.symbols, &self.symbols_cap, <uint64_t>self.nr_symbols + 1, sizeof(Symbol)) < 0:
                raise MemoryError
            self.symbols[self.nr_symbols] = symbol
            self.nr_symbols += 1
        self.check()
        if self.nr_symbols == 0:
            return
        qsort(self.symbols, self.nr_symbols, sizeof(Symbol), by_name)
        if reserve(<void **>&self.functions, &self.functions_cap, self.nr_symbols, sizeof(ElfFunction)) < 0:
            raise MemoryError
        first = 0
        n = 0
        for i in range(1, self.nr_symbols + 1):
            if i < self.nr_symbols and same_function(&self.symbols[first], &self.symbols[i]):
                continue
            f = &self.functions[n]
            memset(f, 0, sizeof(ElfFunction))
            f.first = first
            f.count = i - first
            # pahole looks for different addresses when the next name comes
            # along, so the last function of all never counts as ambiguous.
            f.ambiguous = i < self.nr_symbols and self.differ(first, i)
            n += 1
            first = i
        self.nr_functions = n

    cdef bint differ(self, uint32_t first, uint32_t end) noexcept nogil:
        """Whether two symbols of a function have different addresses, 0 aside."""
        cdef uint64_t address = 0
        cdef uint32_t i
        for i in range(first, end):
            if address and self.symbols[i].value != address:
                return True
            address = self.symbols[i].value
        return False

    def in_section(self, uint32_t section):
        """(name, value, size) of each symbol defined in the section with this index."""
        cdef uint32_t i
        cdef Symbol symbol
        result = []
        for i in range(self.count):
            if self.read(i, &symbol) and symbol.section == section:
                result.append((<bytes>symbol.name, symbol.value, symbol.size))
        self.check()
        return result

    cdef const Symbol *function(self, uint32_t index) noexcept nogil:
        """The first symbol of a function; its name counts up to `name_length`."""
        return &self.symbols[self.functions[index].first]

    def mark_kfunc(self, bytes name not None, uint32_t flags) -> bool:
        """Note that the function of this name is a kfunc; False when there is none."""
        cdef uint32_t low = 0
        cdef uint32_t high = self.nr_functions
        cdef uint32_t middle
        cdef Symbol key
        cdef const Symbol *symbol
        cdef int order
        key.name = name
        key.name_length = <uint32_t>len(name)
        key.start = name_start(&key)
        while low < high:
            middle = (low + high) // 2
            symbol = &self.symbols[self.functions[middle].first]
            key.index = symbol.index
            order = by_name(&key, symbol)
            if order == 0:
                self.functions[middle].kfunc = True
                self.functions[middle].kfunc_flags = flags
                return True
            if order < 0:
                high = middle
            else:
                low = middle + 1
        return False
