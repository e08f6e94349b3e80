# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only; searches stay between their bounds)
"""Prepares what the workers share; see `context.pxd`."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from btfstep.btf.memory cimport mix
from btfstep.btf.strings cimport FAILED, NO_NAME, StringPool
from btfstep.btf.base cimport PreparedBase
from btfstep.dwarf.constants cimport DW_OP_reg0
from btfstep.dwarf.sections cimport SEC_INFO, SEC_LINE_STR, SEC_STR, SEC_TYPES, DebugSections
from btfstep.dwarf.unit cimport UnitList, uses_ref_addr
from btfstep.elf.symbols cimport STT_OBJECT_TYPE, Symbol, SymbolTable

import heapq

from btfstep.elf.constants import ET_REL, SHT_NOBITS, SHT_PROGBITS
from btfstep.elf.notes import lto_note
from btfstep.elf.placement import Placement

_PERCPU = ".data..percpu"

# e_machine -> parameters in registers, and the registers' DWARF numbers where
# they are known; facts of each calling convention, as pahole has them.
_REGISTERS = {
    2: (6, ()),  # SPARC
    8: (8, ()),  # MIPS
    20: (8, ()),  # PowerPC
    21: (8, ()),  # PowerPC 64
    22: (5, (2, 3, 4, 5, 6)),  # s390
    40: (8, (0, 1, 2, 3, 4, 5, 6, 7)),  # ARM
    43: (6, ()),  # SPARC V9
    45: (8, ()),  # ARC
    62: (6, (5, 4, 1, 2, 8, 9)),  # x86-64: rdi, rsi, rdx, rcx, r8, r9
    183: (8, (0, 1, 2, 3, 4, 5, 6, 7)),  # AArch64
    243: (8, ()),  # RISC-V
}
_S390 = 22


def _address_ranges(sections, placement):
    """Split the address space so that each address lies in the first section that covers it.

    Returns [(start, section index or 0)], sorted by start.
    """
    spans = [
        (address, address + size, s.index)
        for s, address, size in zip(sections, placement.addresses, placement.sizes, strict=True)
        if s.index and s.type in (SHT_PROGBITS, SHT_NOBITS) and size and address + size < 1 << 64
    ]
    spans.sort()
    ends = sorted({end for _, end, _ in spans} | {start for start, _, _ in spans})
    result = []
    active = []  # heap of (index, end)
    at = last = 0
    for point in ends:
        while at < len(spans) and spans[at][0] <= point:
            heapq.heappush(active, (spans[at][2], spans[at][1]))
            at += 1
        while active and active[0][1] <= point:
            heapq.heappop(active)
        owner = active[0][0] if active else 0
        if owner != last:
            result.append((point, owner))
            last = owner
    return result


cdef class EncodeContext:
    """Everything that is known before the first unit is read.

    `image`: the ElfImage; `settings`: an EncodeSettings; `symbols`: its
    SymbolTable, with the functions collected; `base`: what the result is
    split from, if many results are.

    Raises FormatError for malformed headers, EncodeError where BTF cannot be made of the file.
    """

    def __cinit__(self, object image, object settings, SymbolTable symbols not None, PreparedBase base=None):
        features = settings.features
        relocate = None
        placement = Placement(image)
        if image.type == ET_REL:
            from btfstep.elf.relocate import Relocator

            relocate = Relocator(image, placement)
        self.sections = DebugSections(image, relocate)
        self.units = UnitList(self.sections)
        self.strings = StringPool() if base is None else base.strings.copy()
        self.strings.set_prefix(settings.kabi_prefix.encode() if settings.kabi_prefix else None)
        self.strings.use_debug_str(&self.sections.c.view[SEC_STR])
        self.strings.allow(sum(self.sections.size(i) for i in (SEC_STR, SEC_LINE_STR, SEC_INFO, SEC_TYPES)))
        self.options.floats = features.float
        self.options.type_tags = features.type_tag
        self.options.decl_tags = features.decl_tag
        self.options.enum64 = features.enum64
        self.options.variables = features.var or features.global_var
        self.options.force = features.encode_force
        self.options.true_signature = features.true_signature
        self.options.verbose = settings.verbose
        self._use_machine(image.machine, image.address_size)
        self._use_sections(image.sections, placement, features)
        self._use_languages(settings)
        if settings.cu_exclude:
            self.cu_exclude = settings.cu_exclude.encode()
        self._use_functions(symbols)
        self._use_objects(symbols)
        # Units that refer to each other have to be read as one.  A kernel says
        # in a note whether it was built so; elsewhere the abbreviations tell.
        lto = lto_note(image)
        self.merge_units = (
            features.force_cu_merging
            or self.units.has_type_units
            or (bool(lto) if lto is not None else uses_ref_addr(&self.sections.c))
        )

    def __dealloc__(self):
        free(self.function_of)
        free(self.function_names)
        free(self.range_start)
        free(self.range_section)
        free(self.section_wanted)
        free(self.section_address)
        free(self.objects)
        free(self.skip_languages)
        free(self.only_languages)

    def _use_machine(self, int machine, unsigned int address_size):
        cdef int i
        count, registers = _REGISTERS.get(machine, (0, ()))
        self.machine.nr_registers = count
        self.machine.two_registers = machine != _S390
        self.machine.address_size = address_size
        for i in range(8):
            self.machine.registers[i] = DW_OP_reg0 + <int>registers[i] if i < len(registers) else -1

    def _use_sections(self, sections, placement, features):
        cdef uint32_t i
        self.nr_sections = <uint32_t>len(sections)
        self.section_wanted = <uint8_t *>calloc(self.nr_sections + 1, 1)
        self.section_address = <uint64_t *>calloc(self.nr_sections + 1, sizeof(uint64_t))
        ranges = _address_ranges(sections, placement) if self.options.variables else []
        self.range_start = <uint64_t *>malloc((len(ranges) + 1) * sizeof(uint64_t))
        self.range_section = <uint32_t *>malloc((len(ranges) + 1) * sizeof(uint32_t))
        if not (self.section_wanted and self.section_address and self.range_start and self.range_section):
            raise MemoryError
        for i in range(self.nr_sections):
            section = sections[i]
            self.section_address[i] = placement.addresses[i]
            self.section_wanted[i] = features.global_var or (features.var and section.name == _PERCPU)
        self.nr_ranges = <uint32_t>len(ranges)
        for i in range(self.nr_ranges):
            self.range_start[i], self.range_section[i] = ranges[i]

    def _use_languages(self, settings):
        cdef uint32_t i
        skip = sorted(settings.lang_exclude)
        only = sorted(settings.lang) if settings.lang is not None else []
        self.skip_languages = <uint32_t *>malloc((len(skip) + 1) * sizeof(uint32_t))
        self.only_languages = <uint32_t *>malloc((len(only) + 1) * sizeof(uint32_t))
        if not (self.skip_languages and self.only_languages):
            raise MemoryError
        self.nr_skip_languages = <uint32_t>len(skip)
        self.nr_only_languages = <uint32_t>len(only)
        for i in range(self.nr_skip_languages):
            self.skip_languages[i] = skip[i]
        for i in range(self.nr_only_languages):
            self.only_languages[i] = only[i]

    def _use_functions(self, SymbolTable symbols):
        """Let functions be found by the numbers of their names."""
        cdef const Symbol *symbol
        cdef uint32_t i, id
        cdef uint32_t count = symbols.nr_functions
        self.function_names = <uint32_t *>malloc((<size_t>count + 1) * sizeof(uint32_t))
        if self.function_names == NULL:
            raise MemoryError
        for i in range(count):
            symbol = symbols.function(i)
            self.strings.work += symbol.name_length  # (which `allow` did not count)
            id = self.strings.intern_copy(symbol.name, symbol.name_length)
            if id == FAILED:
                raise MemoryError
            self.function_names[i] = id
        self.nr_function_of = self.strings.count
        self.function_of = <uint32_t *>calloc(<size_t>self.nr_function_of + 1, sizeof(uint32_t))
        if self.function_of == NULL:
            raise MemoryError
        for i in range(count):
            self.function_of[self.function_names[i]] = i + 1

    cdef bint lacks_function(self, uint32_t name) noexcept nogil:
        """Whether there is a name, but no function symbol of it."""
        return name != NO_NAME and (name >= self.nr_function_of or self.function_of[name] == 0)

    def _use_objects(self, SymbolTable symbols):
        """Remember the object symbols of the wanted sections by name."""
        cdef uint32_t i, id
        cdef uint64_t count = 0
        cdef uint64_t at, key
        cdef Symbol symbol
        if not self.options.variables:
            return
        for i in range(symbols.count):
            if symbols.read(i, &symbol) and self.wants(&symbol):
                count += 1
        self.objects_mask = 15
        while self.objects_mask < count * 2:
            self.objects_mask = self.objects_mask * 2 + 1
        self.objects = <uint64_t *>calloc(<size_t>self.objects_mask + 1, sizeof(uint64_t))
        if self.objects == NULL:
            raise MemoryError
        for i in range(symbols.count):
            if not symbols.read(i, &symbol) or not self.wants(&symbol):
                continue
            id = self.strings.intern_bytes(<bytes>symbol.name)
            key = <uint64_t>symbol.section << 32 | (id + 1)
            at = mix(0, key, self.strings.key) & self.objects_mask
            while self.objects[at] != 0 and self.objects[at] != key:
                at = (at + 1) & self.objects_mask
            self.objects[at] = key
        symbols.check()

    cdef bint wants(self, const Symbol *symbol) noexcept nogil:
        return (
            symbol.type == STT_OBJECT_TYPE and symbol.section < self.nr_sections
            and self.section_wanted[symbol.section]
        )

    cdef bint has_object(self, uint32_t section, uint32_t name) noexcept nogil:
        """Whether an object symbol of this name is in the section."""
        cdef uint64_t key = <uint64_t>section << 32 | (name + 1)
        cdef uint64_t at = mix(0, key, self.strings.key) & self.objects_mask
        while self.objects[at] != 0:
            if self.objects[at] == key:
                return True
            at = (at + 1) & self.objects_mask
        return False

    cdef uint32_t find_section(self, uint64_t address) noexcept nogil:
        """The index of the section that holds this address; 0: none."""
        cdef uint32_t low = 0
        cdef uint32_t high = self.nr_ranges
        cdef uint32_t middle
        while low < high:
            middle = (low + high) // 2
            if self.range_start[middle] <= address:
                low = middle + 1
            else:
                high = middle
        return self.range_section[low - 1] if low else 0

    cdef bint takes_language(self, uint32_t language) noexcept nogil:
        """Whether units of this DW_LANG are to be encoded."""
        cdef uint32_t i
        for i in range(self.nr_skip_languages):
            if self.skip_languages[i] == language:
                return False
        if self.nr_only_languages == 0:
            return True
        for i in range(self.nr_only_languages):
            if self.only_languages[i] == language:
                return True
        return False
