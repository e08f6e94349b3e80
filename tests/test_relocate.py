# SPDX-License-Identifier: GPL-2.0-only
"""Debug sections of relocatable files are relocated as a linker would, and sections placed as libdwfl does."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btfstep.elf.constants import ET_REL, SHF_ALLOC, SHF_COMPRESSED, SHT_REL, SHT_RELA
from btfstep.elf.image import ElfImage
from btfstep.elf.placement import FIRST_ADDRESS, Placement
from btfstep.elf.relocate import Relocator
from btfstep.elf.relocation_types import OPERATIONS, TYPE_LIMIT, relocation_name
from btfstep.errors import BtfstepError, FormatError
from conftest import tool
from elfmaker import ET_EXEC, SHN_ABS, SHT_NOBITS, ElfMaker

X86_64, I386, AARCH64, ARM, RISCV, S390, PPC, PPC64, LOONGARCH, MIPS = 62, 3, 183, 40, 243, 22, 20, 21, 258, 8

SHN_COMMON = 0xFFF2
COMMON_ALIGN = 0x2000

# The field of each type of relocation that sets an address: (type, bytes).
ADDRESS_TYPES = {
    (X86_64, 64, False): [(1, 8), (10, 4), (11, 4), (12, 2), (14, 1)],
    (X86_64, 32, False): [(10, 4)],  # x32
    (I386, 32, False): [(1, 4), (20, 2), (22, 1)],
    (AARCH64, 64, False): [(257, 8), (258, 4), (259, 2)],
    (AARCH64, 64, True): [(257, 8), (258, 4), (259, 2)],
    (ARM, 32, False): [(2, 4), (5, 2), (8, 1)],
    (ARM, 32, True): [(2, 4), (5, 2), (8, 1)],
    (RISCV, 64, False): [(1, 4), (2, 8), (54, 1), (55, 2), (56, 4)],
    (RISCV, 32, False): [(1, 4), (54, 1), (55, 2), (56, 4)],
    (S390, 64, True): [(1, 1), (3, 2), (4, 4), (22, 8)],
    (PPC, 32, True): [(1, 4), (3, 2), (24, 4), (25, 2)],
    (PPC64, 64, True): [(1, 4), (3, 2), (24, 4), (25, 2), (38, 8), (43, 8)],
    (PPC64, 64, False): [(1, 4), (3, 2), (24, 4), (25, 2), (38, 8), (43, 8)],
    (LOONGARCH, 64, False): [(1, 4), (2, 8)],
    (MIPS, 64, False): [(1, 2), (2, 4), (18, 8)],
    (MIPS, 64, True): [(1, 2), (2, 4), (18, 8)],
    (MIPS, 32, False): [(1, 2), (2, 4)],
    (MIPS, 32, True): [(1, 2), (2, 4)],
}
# Types that add to or subtract from the field.
SUM_TYPES = {
    (RISCV, 64, False): [
        (33, 1, 1),
        (34, 2, 1),
        (35, 4, 1),
        (36, 8, 1),
        (37, 1, -1),
        (38, 2, -1),
        (39, 4, -1),
        (40, 8, -1),
    ],
    (LOONGARCH, 64, False): [
        *[(47, 1, 1), (48, 2, 1), (49, 3, 1), (50, 4, 1), (51, 8, 1)],
        *[(52, 1, -1), (53, 2, -1), (54, 3, -1), (55, 4, -1), (56, 8, -1)],
    ],
}
# Offsets in thread-local storage, and types that do nothing.
IGNORED_TYPES = {
    (X86_64, 64, False): [0, 17, 21],
    (I386, 32, False): [0, 32],
    (AARCH64, 64, False): [0, 256, 1029],
    (ARM, 32, False): [0, 106],
    (RISCV, 64, False): [0, 8, 9],
    (S390, 64, True): [0, 52, 53],
    (PPC, 32, True): [0, 78],
    (PPC64, 64, False): [0, 78, 110],
    (LOONGARCH, 64, False): [0, 8, 9],
    (MIPS, 64, False): [0, 39, 41],
}
Kind = tuple[int, int, bool]
KINDS = list(ADDRESS_TYPES)


def cases(table: dict[Kind, list[object]]) -> list[tuple[Kind, object]]:
    return [(kind, row) for kind, rows in table.items() for row in rows]


@dataclass
class Relocatable:
    """A relocatable file with one debug section, ``.debug_info``, by hand.

    Its symbols: 1 is .text+0x30 (.text being the first allocated section), 2 is .debug_str+0, 3 is
    absolute, 4 undefined, 5 common.
    """

    kind: Kind = (X86_64, 64, False)
    data: bytes = bytes(16)
    entries: list[tuple[int, int, int, int]] = field(default_factory=list)  # offset, type, symbol, addend
    rela: bool = True
    table: bytes | None = None  # instead of what `entries` make
    entsize: int | None = None
    link: int | None = None
    type: int = ET_REL
    section: str = ".debug_info"

    def build(self) -> bytes:
        machine, bits, big = self.kind
        maker = ElfMaker(bits=bits, big_endian=big, machine=machine, type=self.type)
        text = maker.section(".text", bytes(64), flags=SHF_ALLOC, align=16)
        strings = maker.section(".debug_str", b"\0string\0")
        info = maker.section(self.section, self.data)
        table = b"".join(self.entry(*row) for row in self.entries) if self.table is None else self.table
        maker.section(
            f".rela{self.section}" if self.rela else f".rel{self.section}",
            table,
            type=SHT_RELA if self.rela else SHT_REL,
            link=info + 2 if self.link is None else self.link,
            info=info,
            entsize=self.size if self.entsize is None else self.entsize,
        )
        maker.symbol("function", value=0x30, shndx=text, info=2)
        maker.symbol("", shndx=strings, info=3)
        maker.symbol("absolute", value=0x1234, shndx=SHN_ABS)
        maker.symbol("undefined", value=7, shndx=0)
        maker.symbol("common", value=COMMON_ALIGN, shndx=SHN_ABS)
        return maker.build().replace(self.last_symbol(SHN_ABS), self.last_symbol(SHN_COMMON))

    def last_symbol(self, shndx: int) -> bytes:
        """The entry of the common symbol from where it can be told from others, were it in this section."""
        order = ">" if self.kind[2] else "<"
        if self.kind[1] == 64:
            return struct.pack(order + "HQ", shndx, COMMON_ALIGN)
        return struct.pack(order + "IIBBH", COMMON_ALIGN, 0, 0x10, 0, shndx)

    @property
    def size(self) -> int:
        return {(64, True): 24, (64, False): 16, (32, True): 12, (32, False): 8}[self.kind[1], self.rela]

    def entry(self, offset: int, type: int, symbol: int, addend: int) -> bytes:
        machine, bits, big = self.kind
        order = ">" if big else "<"
        if bits == 32:
            head = struct.pack(order + "II", offset, symbol << 8 | type)
            return head + (struct.pack(order + "i", addend) if self.rela else b"")
        if machine == MIPS:
            # A word and four bytes, which keep their places in either byte order.
            types = bytes([type >> 24, type >> 16 & 0xFF, type >> 8 & 0xFF, type & 0xFF])
            head = struct.pack(order + "QI", offset, symbol) + types
        else:
            head = struct.pack(order + "QQ", offset, symbol << 32 | type)
        return head + (struct.pack(order + "q", addend) if self.rela else b"")

    def relocated(self, tmp_path: Path) -> bytes:
        path = tmp_path / "file.o"
        path.write_bytes(self.build())
        return relocated(path, self.section)


def relocated(path: Path | str, section: str = ".debug_info") -> bytes:
    with ElfImage.open(path) as image:
        contents = image.debug_section(section)
        assert contents is not None
        return bytes(Relocator(image, Placement(image))(section, contents))


def number(data: bytes | bytearray, big: bool) -> int:
    return int.from_bytes(data, "big" if big else "little")


def word(value: int, width: int, big: bool) -> bytes:
    return (value % (1 << 8 * width)).to_bytes(width, "big" if big else "little")


FUNCTION = FIRST_ADDRESS + 0x30


# What each type does


@pytest.mark.parametrize(("kind", "row"), cases(ADDRESS_TYPES))  # type: ignore[arg-type]
def test_an_address_is_the_symbol_and_the_addend(tmp_path: Path, kind: Kind, row: tuple[int, int]) -> None:
    code, width = row
    file = Relocatable(kind, b"\xff" * 16, [(3, code, 1, 5)])
    assert file.relocated(tmp_path) == b"\xff" * 3 + word(FUNCTION + 5, width, kind[2]) + b"\xff" * (13 - width)


@pytest.mark.parametrize(("kind", "row"), cases(ADDRESS_TYPES))  # type: ignore[arg-type]
def test_without_addends_the_field_holds_the_addend(tmp_path: Path, kind: Kind, row: tuple[int, int]) -> None:
    code, width = row
    data = b"\xaa" * 3 + word(9, width, kind[2]) + b"\xaa" * 4
    file = Relocatable(kind, data, [(3, code, 1, 0)], rela=False)
    assert file.relocated(tmp_path) == b"\xaa" * 3 + word(FUNCTION + 9, width, kind[2]) + b"\xaa" * 4


@pytest.mark.parametrize(("kind", "row"), cases(SUM_TYPES))  # type: ignore[arg-type]
def test_sums_change_what_the_field_holds(tmp_path: Path, kind: Kind, row: tuple[int, int, int]) -> None:
    code, width, sign = row
    file = Relocatable(kind, b"\x55" * 16, [(2, code, 1, 4)])
    expected = word(number(b"\x55" * width, False) + sign * (FUNCTION + 4), width, kind[2])
    assert file.relocated(tmp_path) == b"\x55" * 2 + expected + b"\x55" * (14 - width)


@pytest.mark.parametrize(("kind", "type"), cases(IGNORED_TYPES))  # type: ignore[arg-type]
def test_some_types_say_nothing_about_types(tmp_path: Path, kind: Kind, type: int) -> None:
    # Whatever else is in the entry, even a place that does not exist.
    file = Relocatable(kind, b"\x55" * 16, [(2, type, 1, 4), (1 << 20, type, 99, 4)])
    assert file.relocated(tmp_path) == b"\x55" * 16


def test_a_distance_is_an_addition_and_a_subtraction(tmp_path: Path) -> None:
    file = Relocatable((RISCV, 64, False), bytes(8), [(0, 35, 1, 0x20), (0, 39, 1, 0x4), (4, 56, 1, 8), (4, 39, 1, 2)])
    assert struct.unpack("<II", file.relocated(tmp_path)) == (0x1C, 6)


@pytest.mark.parametrize(
    ("kind", "types", "expected"),
    [((RISCV, 64, False), (53, 52), 0xC0 | 0x11), ((LOONGARCH, 64, False), (105, 106), 0xC0 | 0x11)],
)
def test_six_bits_leave_the_upper_two(tmp_path: Path, kind: Kind, types: tuple[int, int], expected: int) -> None:
    file = Relocatable(kind, b"\xc0\xff", [(0, types[0], 1, 0x20), (0, types[1], 1, 0xF)])
    assert file.relocated(tmp_path) == bytes([expected, 0xFF])


@pytest.mark.parametrize(
    ("kind", "types", "before"),
    [((RISCV, 64, False), (60, 61), b"\xff\xff\x7f"), ((LOONGARCH, 64, False), (107, 108), b"\x80\x80\x00")],
)
def test_a_leb128_number_keeps_its_length(tmp_path: Path, kind: Kind, types: tuple[int, int], before: bytes) -> None:
    file = Relocatable(kind, before + b"\xee", [(0, types[0], 1, 0x95), (0, types[1], 1, 0x10)])
    assert file.relocated(tmp_path) == b"\x85\x81\x00\xee"


@pytest.mark.parametrize("data", [b"\x80" * 4, b"\x80" * 40 + b"\0", b"\xff" * 17 + b"\0"])
def test_a_leb128_number_ends(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FormatError, match=r"\.debug_info\+0x0: relocated LEB128 number without an end"):
        Relocatable((RISCV, 64, False), data, [(0, 60, 1, 0)]).relocated(tmp_path)


@given(
    kind=st.sampled_from(KINDS),
    rela=st.booleans(),
    data=st.binary(min_size=8, max_size=64),
    rows=st.lists(
        st.tuples(st.integers(0, 56), st.integers(0, 9), st.integers(1, 3), st.integers(-(1 << 31), (1 << 31) - 1))
    ),
)
@settings(max_examples=200, deadline=None)
def test_relocations_apply_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    kind: Kind,
    rela: bool,
    data: bytes,
    rows: list[tuple[int, int, int, int]],
) -> None:
    model = bytearray(data)
    entries = []
    for offset, pick, symbol, addend in rows:
        code, width = ADDRESS_TYPES[kind][pick % len(ADDRESS_TYPES[kind])]
        if offset + width > len(data):
            continue
        entries.append((offset, code, symbol, addend))
        value = (0, FUNCTION, 0, 0x1234)[symbol] + (addend if rela else number(model[offset : offset + width], kind[2]))
        model[offset : offset + width] = word(value, width, kind[2])
    file = Relocatable(kind, data, entries, rela=rela)
    assert file.relocated(tmp_path_factory.mktemp("relocate")) == model


# Which value a symbol has


@pytest.mark.parametrize(
    ("symbol", "value"),
    [(0, 0), (1, FUNCTION), (2, 0), (3, 0x1234), (5, 0)],
    ids=["none", "section", "debug", "absolute", "common"],
)
def test_symbols(tmp_path: Path, symbol: int, value: int) -> None:
    file = Relocatable(entries=[(0, 1, symbol, 3)])
    assert number(file.relocated(tmp_path)[:8], False) == value + 3


@pytest.mark.parametrize("rela", [True, False])
def test_what_refers_to_an_undefined_symbol_stays(tmp_path: Path, rela: bool) -> None:
    file = Relocatable(data=b"\x11" * 16, entries=[(0, 1, 4, 3), (8, 10, 2, 4)], rela=rela)
    assert file.relocated(tmp_path)[:8] == b"\x11" * 8


def test_section_numbers_that_need_more_than_16_bits(tmp_path: Path) -> None:
    maker = ElfMaker()
    for _ in range(0xFF10):
        maker.section(".s")
    late = maker.section(".late", bytes(8), flags=SHF_ALLOC, align=8)
    info = maker.section(".debug_info", bytes(8))
    maker.section(".rela.debug_info", struct.pack("<QQq", 0, 1 << 32 | 1, 2), type=SHT_RELA, link=info + 2, info=info)
    maker.symbol("x", value=4, shndx=late)
    path = tmp_path / "many.o"
    path.write_bytes(maker.build())
    assert relocated(path) == struct.pack("<Q", FIRST_ADDRESS + 6)


# When there is nothing to do


def test_contents_without_relocations_are_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "file.o"
    path.write_bytes(Relocatable(entries=[(0, 1, 1, 0)]).build())
    with ElfImage.open(path) as image:
        contents = image.debug_section(".debug_str")
        assert contents is not None
        assert Relocator(image, Placement(image))(".debug_str", contents) is contents


def test_the_file_itself_is_not_changed(tmp_path: Path) -> None:
    file = Relocatable(entries=[(0, 1, 1, 0)])
    file.relocated(tmp_path)
    assert (tmp_path / "file.o").read_bytes() == file.build()


def test_linked_files_are_relocated_already(tmp_path: Path) -> None:
    # A kernel linked with --emit-relocs keeps its relocations.
    file = Relocatable(entries=[(0, 1, 1, 5)], type=ET_EXEC)
    assert file.relocated(tmp_path) == bytes(16)


@pytest.mark.parametrize("section", [".debug_info", ".zdebug_info"])
def test_compressed_sections(tmp_path: Path, build_object: BuildObject, section: str) -> None:
    plain = relocated(build_object(SOURCE))
    flag = "-gz=zlib" if section == ".debug_info" else "-gz=zlib-gnu"
    path = build_object(SOURCE, flag)
    with ElfImage.open(path) as image:
        if image.section(section) is None:
            pytest.skip(f"the assembler does not make {section}")
    assert relocated(path) == plain


# What is refused


@pytest.mark.parametrize(
    ("kind", "type", "name"),
    [
        ((X86_64, 64, False), 3, "R_X86_64_GOT32 (3)"),
        ((X86_64, 64, False), 2, "R_X86_64_PC32 (2)"),
        ((I386, 32, False), 2, "R_386_PC32 (2)"),
        ((AARCH64, 64, False), 261, "R_AARCH64_PREL32 (261)"),
        ((AARCH64, 64, False), 311, "311 of aarch64"),
        ((ARM, 32, False), 3, "R_ARM_REL32 (3)"),
        ((RISCV, 64, False), 57, "R_RISCV_32_PCREL (57)"),
        ((S390, 64, True), 5, "R_390_PC32 (5)"),
        ((PPC, 32, True), 26, "R_PPC_REL32 (26)"),
        ((PPC64, 64, False), 44, "R_PPC64_REL64 (44)"),
        ((LOONGARCH, 64, False), 99, "R_LARCH_32_PCREL (99)"),
        ((MIPS, 64, False), 248, "R_MIPS_PC32 (248)"),
        ((MIPS, 64, False), 0x1812, "6162 of mips"),  # R_MIPS_64 and then R_MIPS_SUB
        ((X86_64, 64, False), 0x80000001, "2147483649 of x86_64"),
    ],
)
def test_other_types_are_refused_by_name(tmp_path: Path, kind: Kind, type: int, name: str) -> None:
    with pytest.raises(FormatError) as caught:
        Relocatable(kind, bytes(16), [(0, 0, 0, 0), (6, type, 1, 0)]).relocated(tmp_path)
    path = tmp_path / "file.o"
    assert str(caught.value) == (
        f"{path}: .debug_info+0x6: relocation type {name} in debug information is not supported"
    )


def test_other_machines_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="relocation of debug information is not supported for sparc64"):
        Relocatable((43, 64, True), entries=[(0, 54, 1, 0)]).relocated(tmp_path)


def test_other_machines_without_relocations_are_fine(tmp_path: Path) -> None:
    assert Relocatable((43, 64, True), entries=[]).relocated(tmp_path) == bytes(16)


@pytest.mark.parametrize(("kind", "row"), cases(ADDRESS_TYPES))  # type: ignore[arg-type]
@pytest.mark.parametrize("rela", [True, False])
def test_fields_lie_inside_the_section(tmp_path: Path, kind: Kind, row: tuple[int, int], rela: bool) -> None:
    code, width = row
    Relocatable(kind, bytes(16), [(16 - width, code, 1, 0)], rela=rela).relocated(tmp_path)
    for offset in (17 - width, 16, (1 << kind[1]) - 1):
        with pytest.raises(FormatError, match=r"rela?\.debug_info\+0x0: relocation of offset .*, past the end of"):
            Relocatable(kind, bytes(16), [(offset, code, 1, 0)], rela=rela).relocated(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_symbols_exist(tmp_path: Path, kind: Kind) -> None:
    code = ADDRESS_TYPES[kind][0][0]
    for symbol in (6, 0xFFFFFF):
        with pytest.raises(FormatError, match=r"\.rela\.debug_info\+0x.*: relocation by a symbol that does not exist"):
            Relocatable(kind, bytes(16), [(0, code, 1, 0), (0, code, symbol, 0)]).relocated(tmp_path)


@pytest.mark.parametrize("shndx", [0x5000, 0xFF03, 0xFFFF])
def test_symbols_are_in_sections_that_exist(tmp_path: Path, shndx: int) -> None:
    file = Relocatable(entries=[(0, 1, 5, 0)])
    path = tmp_path / "file.o"
    path.write_bytes(file.build().replace(file.last_symbol(SHN_COMMON), file.last_symbol(shndx)))
    with pytest.raises(FormatError, match="relocation by a symbol in a section that does not exist"):
        relocated(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": bytes(23)}, "is not made of relocations of 24 bytes"),
        ({"table": bytes(16), "entsize": 16}, "is not made of relocations of 24 bytes"),
        ({"link": 77}, "names section 77 as its symbol table, which is none"),
        ({"link": 1}, "names section 1 as its symbol table, which is none"),
        ({"link": 0}, "relocation by a symbol that does not exist"),
    ],
)
def test_malformed_tables(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Relocatable(entries=[(0, 1, 1, 0)], **change).relocated(tmp_path)  # type: ignore[arg-type]


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_no_damage_does_more_than_raise(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([(RISCV, 64, False), (MIPS, 64, False), (S390, 64, True), (I386, 32, False)]))
    types = [code for codes in OPERATIONS[kind[0]].values() for code in codes]
    rows = st.tuples(
        st.integers(0, 20), st.sampled_from(types).filter(lambda t: t < 256), st.integers(0, 7), st.just(1)
    )
    file = bytearray(Relocatable(kind, bytes(16), data.draw(st.lists(rows, max_size=8))).build())
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(file) - 1), st.integers(0, 255)), max_size=6)):
        file[at] = byte
    path = tmp_path_factory.mktemp("damage") / "file.o"
    path.write_bytes(file)
    try:
        relocated(path)
    except (BtfstepError, AssertionError):
        pass  # or the section lost its name


def test_tables_do_not_overlap_without_bound(tmp_path: Path) -> None:
    # Many headers for the same bytes would make a small file take forever.
    maker = ElfMaker()
    info = maker.section(".debug_info", bytes(16))
    maker.section(".rela.debug_info", bytes(24 * 100), type=SHT_RELA, info=info)
    for _ in range(50):
        maker.section(".rela", type=SHT_RELA, size=24 * 100, info=info)
    path = tmp_path / "file.o"
    path.write_bytes(maker.build())
    with pytest.raises(FormatError, match=r"relocations of \.debug_info are larger than the file"):
        relocated(path)


def test_the_table_of_types_fits_its_array() -> None:
    for machine, operations in OPERATIONS.items():
        codes = [code for codes in operations.values() for code in codes]
        assert len(codes) == len(set(codes))
        assert all(0 <= code < TYPE_LIMIT for code in codes)
        # Each has a name, though only others are ever shown.
        assert not any(relocation_name(machine, code).startswith(str(code)) for code in codes)


# Where sections are


@dataclass
class Sections:
    """A file of empty-headed sections: (flags, size, alignment, address)."""

    rows: list[tuple[int, int, int, int]]
    type: int = ET_REL
    bits: int = 64

    def placed(self, tmp_path: Path) -> Placement:
        maker = ElfMaker(type=self.type, bits=self.bits)
        for number, (flags, size, align, addr) in enumerate(self.rows):
            maker.section(f".s{number}", flags=flags, size=size, align=align, addr=addr, type=SHT_NOBITS)
        path = tmp_path / "file.o"
        path.write_bytes(maker.build())
        with ElfImage.open(path) as image:
            return Placement(image)

    def addresses(self, tmp_path: Path) -> list[int]:
        return self.placed(tmp_path).addresses[1 : 1 + len(self.rows)]


def test_allocated_sections_follow_each_other(tmp_path: Path) -> None:
    rows = [(SHF_ALLOC, 5, 16, 0), (0, 100, 1, 0), (SHF_ALLOC, 3, 1, 0), (SHF_ALLOC, 0, 8, 0), (SHF_ALLOC, 1, 0, 0)]
    assert Sections(rows).addresses(tmp_path) == [0x10000, 0, 0x10005, 0x10008, 0x10008]


def test_a_strict_alignment_moves_the_start(tmp_path: Path) -> None:
    rows = [(SHF_ALLOC, 5, 4, 0), (SHF_ALLOC, 1, 0x40000, 0), (SHF_ALLOC, 1, 1, 0)]
    assert Sections(rows).addresses(tmp_path) == [0x40000, 0x80000, 0x80001]


def test_an_address_in_the_file_is_given_up(tmp_path: Path) -> None:
    rows = [(SHF_ALLOC, 5, 4, 0), (SHF_ALLOC, 8, 8, 0xB8)]
    assert Sections(rows).addresses(tmp_path) == [0x10000, 0x10008]


def test_but_not_where_no_padding_comes_before(tmp_path: Path) -> None:
    # What `ld -r` leaves in __patchable_function_entries of a kernel module.
    rows = [(SHF_ALLOC, 8, 4, 0), (SHF_ALLOC, 8, 8, 0xB8), (SHF_ALLOC, 8, 8, 0)]
    placement = Sections(rows).placed(tmp_path)
    assert placement.addresses[1:4] == [0x10000, 0xB8, 0x10008]
    assert placement.bias == 0


def test_files_that_say_where_they_start(tmp_path: Path) -> None:
    rows = [(SHF_ALLOC, 8, 8, 0x400), (SHF_ALLOC, 8, 8, 0x408)]
    placement = Sections(rows).placed(tmp_path)
    assert placement.addresses[1:3] == [0x400, 0x408]
    assert placement.bias == 0x10000 - 0x400


def test_linked_files_are_where_they_say(tmp_path: Path) -> None:
    rows = [(SHF_ALLOC, 8, 8, 0), (SHF_ALLOC, 8, 8, 0x408)]
    placement = Sections(rows, type=ET_EXEC).placed(tmp_path)
    assert placement.addresses[1:3] == [0, 0x408]
    assert placement.bias == 0


@pytest.mark.parametrize("bits", [32, 64])
def test_absurd_sizes_wrap(tmp_path: Path, bits: int) -> None:
    top = (1 << bits) - 1
    rows = [(SHF_ALLOC, top, 1, 0), (SHF_ALLOC, top, 16, 0), (SHF_ALLOC, 4, 1, top)]
    assert all(0 <= address <= top for address in Sections(rows, bits=bits).addresses(tmp_path))


def test_an_alignment_is_a_power_of_two(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"\.s1: alignment of 12, no power of two"):
        Sections([(0, 8, 12, 0), (SHF_ALLOC, 8, 12, 0)]).placed(tmp_path)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 0x3000), st.integers(0, 18), st.integers(0, 0x200)), max_size=8
    )
)
@settings(max_examples=200, deadline=None)
def test_placed_sections_are_aligned_and_apart(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int, int]]
) -> None:
    sections = [(SHF_ALLOC if flags else 0, size, 1 << align, 0) for flags, size, align, _ in rows]
    end = 0
    for address, (flags, size, align, _) in zip(
        Sections(sections).addresses(tmp_path_factory.mktemp("place")), sections, strict=True
    ):
        if not flags:
            assert address == 0
            continue
        assert address >= max(end, FIRST_ADDRESS)
        assert address % align == 0
        end = address + size


def test_compressed_sections_count_decompressed(tmp_path: Path) -> None:
    # Variables of no section that has data are found in debug sections, which lie at 0.
    maker = ElfMaker()
    maker.section(".debug_info", maker.chdr(1, 5000) + bytes(8), flags=SHF_COMPRESSED)
    maker.section(".zdebug_str", b"ZLIB" + (7000).to_bytes(8, "big") + bytes(8))
    maker.section(".debug_abbrev", bytes(9))
    maker.section(".debug_line", b"short", flags=SHF_COMPRESSED)
    path = tmp_path / "file.o"
    path.write_bytes(maker.build())
    with ElfImage.open(path) as image:
        assert Placement(image).sizes[1:5] == [5000, 7000, 9, 5]


# Real compilers, and a linker to compare with

SOURCE = """
struct list { struct list *next, *prev; };
struct pair { long a, b; };
enum e { E0, E1 = 5 };
struct dev { const char *name; struct list l; int (*probe)(struct dev *d, unsigned char c); enum e e; };
__attribute__((section(".data..percpu"))) int percpu_counter = 4;
__attribute__((section(".data..percpu"))) struct pair percpu_pair = {1, 2};
const int table[4] = {1, 2, 3, 4};
struct dev device = { "name" };
static long total;
static __attribute__((noinline)) long helper(struct pair *p, long n) { total += n; return p->a + n; }
static int probe(struct dev *d, unsigned char c) { static int calls = 1; return calls += c + helper(&percpu_pair, c); }
__attribute__((section(".init.text"))) int init(void) { device.probe = probe; return table[total & 3]; }
long exported(const struct dev *d, int n) { return helper((struct pair *)&d->l, n) + d->e + percpu_counter; }
"""
COMPILERS = [
    "gcc",
    "clang",
    *(
        f"{triple}-gcc"
        for triple in (
            "aarch64-linux-gnu",
            "arm-linux-gnueabihf",
            "i686-linux-gnu",
            "loongarch64-linux-gnu",
            "mips-linux-gnu",
            "mips64-linux-gnuabi64",
            "mips64el-linux-gnuabi64",
            "mipsel-linux-gnu",
            "powerpc64-linux-gnu",
            "powerpc64le-linux-gnu",
            "riscv64-linux-gnu",
            "s390x-linux-gnu",
        )
    ),
]


class BuildObject:
    """``build_object(source, *flags, cc="gcc")``: compile C and return the path of the relocatable file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.count = 0

    def __call__(self, source: str, *flags: str, cc: str = "gcc") -> Path:
        (self.directory / "source.c").write_text(source)
        self.count += 1
        path = self.directory / f"{self.count}.o"
        machine_flags = ["-mno-abicalls"] if cc.startswith("mips") else []  # as kernels have it
        if cc == "gcc":
            machine_flags = ["-gno-record-gcc-switches"]  # equal code has equal DWARF
        command = [tool(cc), "-g", "-O2", "-fno-pic", *machine_flags, *flags, "-c", "source.c"]
        subprocess.run([*command, "-o", path.name], cwd=self.directory, check=True)
        return path


@pytest.fixture
def build_object(tmp_path: Path) -> BuildObject:
    return BuildObject(tmp_path)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("cc", [cc for cc in COMPILERS if cc.endswith("gcc")])
def test_the_bytes_are_the_linkers(build_object: BuildObject, cc: str, version: int) -> None:
    # Strings that are not merged keep their offsets.
    path = build_object(SOURCE, f"-gdwarf-{version}", "-fno-merge-debug-strings", cc=cc)
    names = (".debug_info", ".debug_addr", ".debug_loc", ".debug_loclists", ".debug_str_offsets")
    with ElfImage.open(path) as image:
        addresses = Placement(image).addresses
        script = "".join(
            f"{section.name} {address:#x} : {{ *({section.name}) }}\n"
            for section, address in zip(image.sections, addresses, strict=True)
            if address or section.name.startswith(".debug_")
        )
    path.with_suffix(".lds").write_text(f"SECTIONS {{\n{script}}}\n")
    linked = path.with_suffix(".elf")
    link = ["-nostdlib", "-static", "-no-pie", f"-Wl,-T,{path.with_suffix('.lds')},-e0,--no-relax,--build-id=none"]
    subprocess.run([tool(cc), *link, "-Wl,--no-check-sections", "-o", str(linked), str(path)], check=True)
    compared = 0
    with ElfImage.open(linked) as image:
        for name in names:
            expected = image.debug_section(name)
            if expected is not None:
                assert relocated(path, name) == expected, name
                compared += 1
    assert compared >= 2


@pytest.mark.parametrize("features", ["default,global_var", "default,true_signature"])
@pytest.mark.parametrize("flags", ["-gdwarf-4", "-gz"])
@pytest.mark.parametrize("cc", COMPILERS)
def test_the_btf_is_that_of_the_reference(
    build_object: BuildObject, reference: str, cc: str, flags: str, features: str
) -> None:
    if cc.startswith("mips64el"):
        pytest.skip("libdw does not relocate this one")
    path = build_object(SOURCE, flags, cc=cc)
    outputs = []
    for number, command in enumerate(([reference], [sys.executable, "-m", "btfstep"])):
        outputs.append(path.with_suffix(f".{number}"))
        options = ["-J", "-j1", f"--btf_features={features}", f"--btf_encode_detached={outputs[-1]}"]
        subprocess.run([*command, *options, str(path)], check=True)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
