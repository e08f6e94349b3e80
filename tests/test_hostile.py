# SPDX-License-Identifier: GPL-2.0-only
# ruff: noqa: F403, F405 (dwarfmaker's constants are the vocabulary of these tests)
"""Input that is broken, or made to break something.

Whatever the bytes, the answer is BTF or one error line. It comes within about a second, and
takes memory that is in proportion to the file: no crash, no hang, no other exception.
"""

from __future__ import annotations

import random
import resource
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import btfstep
from btfstep.errors import BtfstepError
from dwarfmaker import *
from elfmaker import SHF_COMPRESSED, SHT_NOTE, SHT_STRTAB, SHT_SYMTAB, ElfMaker

SECONDS = 10
"""Of processor time; a hundred times what these files take, and far below what a quadratic pass would."""
MEMORY = 1 << 30
"""Bytes of address space."""


@pytest.fixture
def survive(tmp_path: Path) -> Callable[..., str | None]:
    """``survive(data)``: encode the file; the error line, or None where it became good BTF."""
    path = tmp_path / "hostile"

    def encode(data: bytes, features: str = "all") -> str | None:
        path.write_bytes(data)
        try:
            btf = btfstep.encode(path, features=features.replace("all", "all,global_var"))
        except BtfstepError as error:
            line = str(error)
            assert line.startswith(f"{path}: ")
            assert line.isprintable()
            return line.removeprefix(f"{path}: ")
        assert btf[:2] in (b"\x9f\xeb", b"\xeb\x9f")
        return None

    return encode


@pytest.fixture
def withstand(tmp_path: Path) -> Callable[..., str | None]:
    """As `survive`, in a process that may not take much time or memory."""
    path = tmp_path / "hostile"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def encode(data: bytes, features: str = "all", jobs: int = 1) -> str | None:
        path.write_bytes(data)
        command = [sys.executable, "-m", "btfstep", f"-j{jobs}", f"--btf_features={features}"]
        command += [f"--btf_encode_detached={path}.btf", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
        if done.returncode == 0:
            assert done.stderr == ""
            return None
        assert done.returncode == 1, (done.returncode, done.stderr)
        assert done.stderr.startswith(f"btfstep: {path}: "), done.stderr
        assert done.stderr.count("\n") == 1
        return done.stderr.removeprefix(f"btfstep: {path}: ").strip()

    return encode


def small(version: int = 5, big_endian: bool = False, dwarf64: bool = False, bits: int = 64) -> DwarfMaker:
    """A file with something of everything."""
    maker = DwarfMaker(version=version, big_endian=big_endian, dwarf64=dwarf64, bits=bits)
    unit = maker.unit(
        (AT_NAME, FORM_STRP, "unit.c"),
        (AT_PRODUCER, FORM_LINE_STRP, "clang"),
        (AT_LANGUAGE, FORM_DATA1, LANG_C11),
        (AT_STR_OFFSETS_BASE, FORM_SEC_OFFSET, BASE),
        (AT_ADDR_BASE, FORM_SEC_OFFSET, BASE),
        (AT_LOCLISTS_BASE, FORM_SEC_OFFSET, BASE),
    )
    number = unit.base_type("int", 4)
    pointer = unit.add(TAG_POINTER, (AT_TYPE, FORM_REF4, number))
    pointer.add(
        TAG_LLVM_ANNOTATION, (AT_NAME, FORM_STRX1, "btf_type_tag"), (AT_CONST_VALUE, FORM_STRX1, "user")
    )  # fmt: skip
    struct_ = unit.add(TAG_STRUCT, (AT_NAME, FORM_STRX2, "pair"), (AT_BYTE_SIZE, FORM_DATA1, 16))
    struct_.add(
        TAG_MEMBER, (AT_NAME, FORM_STRING, "a"), (AT_TYPE, FORM_REF_UDATA, pointer), (AT_MEMBER_LOCATION, FORM_DATA1, 0)
    )
    member = struct_.add(
        TAG_MEMBER, (AT_NAME, FORM_STRING, "b"), (AT_TYPE, FORM_REF2, number), (AT_DATA_BIT_OFFSET, FORM_DATA1, 64),
        (AT_BIT_SIZE, FORM_IMPLICIT_CONST, 3),
    )  # fmt: skip
    member.add(TAG_LLVM_ANNOTATION, (AT_NAME, FORM_STRP, "btf_decl_tag"), (AT_CONST_VALUE, FORM_STRING, "tag"))
    array = unit.add(TAG_ARRAY, (AT_TYPE, FORM_REF4, struct_))
    array.add(TAG_SUBRANGE, (AT_UPPER_BOUND, FORM_SDATA, 7))
    enum = unit.add(TAG_ENUMERATION, (AT_NAME, FORM_STRING, "e"), (AT_BYTE_SIZE, FORM_DATA1, 8))
    enum.add(TAG_ENUMERATOR, (AT_NAME, FORM_STRING, "A"), (AT_CONST_VALUE, FORM_SDATA, -1))
    unit.add(TAG_TYPEDEF, (AT_NAME, FORM_STRING, "t"), (AT_TYPE, FORM_REF_ADDR, array))
    proto = unit.add(TAG_SUBROUTINE, (AT_TYPE, FORM_REF8, pointer))
    proto.add(TAG_PARAMETER, (AT_TYPE, FORM_INDIRECT, (FORM_REF4, number)))
    proto.add(TAG_VARARGS)
    address = maker.function("f")
    maker.function("f.isra.0", 0x40)
    location = b"\4\0\x08\1\x55\4\x08\x10\3\xa3\1\x55\0"
    abstract = unit.add(TAG_FUNCTION, (AT_NAME, FORM_STRING, "f"), (AT_INLINE, FORM_DATA1, 1))
    formal = abstract.add(TAG_PARAMETER, (AT_NAME, FORM_STRING, "p"), (AT_TYPE, FORM_REF4, struct_))
    function = unit.add(TAG_FUNCTION, (AT_ORIGIN, FORM_REF4, abstract), (AT_LOW_PC, FORM_ADDRX1, address))
    where = (FORM_LOCLISTX, location) if version >= 5 else (FORM_EXPRLOC, b"\x55\x93\x08\x54\x93\x08")
    function.add(TAG_PARAMETER, (AT_ORIGIN, FORM_REF4, formal), (AT_LOCATION, *where))
    place = b"\x03" + maker.number(TEXT + 0x20, bits // 8)
    unit.add(TAG_VARIABLE, (AT_NAME, FORM_STRING, "v"), (AT_TYPE, FORM_REF4, enum), (AT_LOCATION, FORM_EXPRLOC, place))
    return maker


VARIANTS = [
    pytest.param({"version": 5}, id="v5"),
    pytest.param({"version": 4, "big_endian": True, "bits": 32}, id="v4-BE-32"),
    pytest.param({"version": 5, "dwarf64": True}, id="v5-64"),
    pytest.param({"version": 2}, id="v2"),
]  # fmt: skip


def test_the_file_to_be_broken_is_good(survive: Callable[..., str | None]) -> None:
    for version in (2, 3, 4, 5):
        assert survive(small(version).build()) is None


class TestElf:
    """Each byte of the ELF header and of each section header, set to what may hurt."""

    VALUES = (0, 1, 0x80, 0xFF)

    @pytest.mark.parametrize("variant", VARIANTS[:2])
    def test_header(self, survive: Callable[..., str | None], variant: dict[str, Any]) -> None:
        good = small(**variant).build()
        for at in range(64):
            for value in self.VALUES:
                survive(good[:at] + bytes([value]) + good[at + 1 :])

    @pytest.mark.parametrize("variant", VARIANTS[:2])
    def test_section_headers(self, survive: Callable[..., str | None], variant: dict[str, Any]) -> None:
        maker = small(**variant)
        good = maker.build()
        size = 64 if maker.bits == 64 else 40
        word, half = ("Q", 40) if maker.bits == 64 else ("I", 32)
        (table,) = struct.unpack_from((">" if maker.big_endian else "<") + word, good, half)
        for at in range(table, len(good)):
            for value in self.VALUES if at % size >= 8 else (0, 0x80):
                survive(good[:at] + bytes([value]) + good[at + 1 :])

    def test_truncated(self, survive: Callable[..., str | None]) -> None:
        good = small().build()
        for size in [*range(200), *range(200, 0x1100, 97), *range(0x1100, len(good), 5)]:
            assert survive(good[:size]) is not None

    def test_a_section_that_claims_more_than_the_file(self, survive: Callable[..., str | None]) -> None:
        maker = small()
        sections = maker.sections()
        elf = ElfMaker()
        for name, data in sections.items():
            elf.section(name, data, size=1 << 62 if name == ".debug_str" else None)
        elf.symbol("here")
        assert (survive(elf.build()) or "").startswith(".debug_str: section [")

    @pytest.mark.parametrize("kind", [0, 1, 2, 3, 0xFFFFFFFF])
    @pytest.mark.parametrize("size", [0, 1, 100, 1 << 31, 1 << 63, (1 << 64) - 1])
    def test_a_compressed_section_that_lies(self, survive: Callable[..., str | None], kind: int, size: int) -> None:
        elf = ElfMaker()
        for name, data in small().sections().items():
            if name == ".debug_info":
                elf.section(name, elf.chdr(kind, size) + data, flags=SHF_COMPRESSED)
            else:
                elf.section(name, data)
        elf.symbol("here")
        assert (survive(elf.build()) or "").startswith(".debug_info: ")

    def test_section_names_may_hold_anything(self, survive: Callable[..., str | None]) -> None:
        elf = ElfMaker()
        for name, data in small().sections().items():
            elf.section(name, data)
        elf.section("\x1b[31m\n\udcff", b"\1", type=SHT_NOTE, size=1 << 30)
        assert (survive(elf.build()) or "").startswith("\\x1b[31m\\n\\udcff")

    @pytest.mark.parametrize("link", [0, 1, 3, 99, 0xFFFFFFFF])
    @pytest.mark.parametrize("entsize", [0, 1, 24, 1 << 63])
    @pytest.mark.parametrize("strings", [b"", b"f", b"\0f\0", b"\0" + b"f" * 50])
    def test_symbols(self, survive: Callable[..., str | None], link: int, entsize: int, strings: bytes) -> None:
        elf = ElfMaker()
        elf.section(".strtab", strings, type=SHT_STRTAB)
        for name, data in small().sections().items():
            elf.section(name, data)
        symbols = b"".join(
            struct.pack("<IBBHQQ", name, info, 0, section, value, 8)
            for name in (0, 1, 2, 50, 0xFFFFFFFF)
            for info in (0x11, 0x12)
            for section, value in ((1, 0), (0xFFFF, 1 << 63), (0xFFF1, (1 << 64) - 1))
        )
        elf.section(".symtab", symbols + b"\1\2\3", type=SHT_SYMTAB, link=link, entsize=entsize)
        survive(elf.build())

    @pytest.mark.parametrize("address", [0, 0x100, (1 << 64) - 1])
    @pytest.mark.parametrize("size", [0, 7, 8, 15, 16])
    def test_kfuncs(self, survive: Callable[..., str | None], address: int, size: int) -> None:
        for value in (0, 1, address, address + 8, (1 << 64) - 8):
            elf = ElfMaker()
            ids = elf.section(".BTF_ids", struct.pack("<QQ", 1 << 32, 0xFFFFFFFF << 32)[:size], addr=address)
            for name, data in small().sections().items():
                elf.section(name, data)
            elf.symbol("f", info=0x12)
            elf.symbol("__BTF_ID__set8__s", value=value % (1 << 64), size=(1 << 64) - 1, info=1, shndx=ids)
            elf.symbol("__BTF_ID__func__f__1", value=(value + 8) % (1 << 64), info=1, shndx=ids)
            elf.symbol("__BTF_ID__func____", value=value % (1 << 64), info=1, shndx=ids)
            survive(elf.build())


class TestDwarf:
    """Each byte of each debug section, set to what may hurt; and each of them cut short."""

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_bytes(self, survive: Callable[..., str | None], variant: dict[str, Any]) -> None:
        maker = small(**variant)
        sections = maker.sections()
        for name, good in sections.items():
            for at, byte in enumerate(good):
                for value in {0, 0x80, 0xFF, byte ^ 1} - {byte}:
                    bad = good[:at] + bytes([value]) + good[at + 1 :]
                    survive(maker.build(sections | {name: bad}))

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_truncated(self, survive: Callable[..., str | None], variant: dict[str, Any]) -> None:
        maker = small(**variant)
        sections = maker.sections()
        for name, good in sections.items():
            for size in range(len(good)):
                survive(maker.build(sections | {name: good[:size]}))
                if name == ".debug_info" and size > 12:
                    # With a length that fits, so that a DIE ends within the unit.
                    head = maker.length(size - (12 if maker.dwarf64 else 4))
                    survive(maker.build(sections | {name: head + good[len(head) : size]}))

    @pytest.mark.parametrize(("form", "section"), [(FORM_STRP, ".debug_str"), (FORM_LINE_STRP, ".debug_line_str")])
    def test_strings_without_an_end(self, survive: Callable[..., str | None], form: int, section: str) -> None:
        maker = DwarfMaker()
        maker.unit().add(TAG_TYPEDEF, (AT_NAME, form, "name"))
        line = survive(maker.build(maker.sections() | {section: b"name"}))
        assert line is not None
        assert line.startswith(".debug_info+0x")
        assert "string" in line

    @pytest.mark.parametrize("length", [0, 1, 2, 6, 7, 0x7FFFFFFF, 0xFFFFFFEF, *range(0xFFFFFFF0, 0x100000000)])
    def test_unit_length(self, survive: Callable[..., str | None], length: int) -> None:
        maker = small()
        maker.units[0].length = length
        assert (survive(maker.build()) or "").startswith(".debug_info+0x0: ")

    @pytest.mark.parametrize("version", [0, 1, 6, 0xFFFF])
    def test_version(self, survive: Callable[..., str | None], version: int) -> None:
        maker = small()
        maker.units[0].version = version
        assert survive(maker.build()) == ".debug_info+0x0: unit of an unknown DWARF version"

    def test_zero_units(self, survive: Callable[..., str | None]) -> None:
        assert survive(DwarfMaker().build({".debug_info": b"", ".debug_abbrev": b""})) == "has no DWARF to encode"

    def test_overlapping_units(self, survive: Callable[..., str | None]) -> None:
        maker = small()
        small_length = maker.length(16)
        sections = maker.sections()
        sections[".debug_info"] = small_length + sections[".debug_info"][4:]
        assert (survive(maker.build(sections)) or "").startswith(".debug_info+0x14: ")

    @pytest.mark.parametrize("offset", [0, 1, 11, 12, 13, 15, 0x1000, 0x7FFFFFFF, 0xFFFFFFFF])
    @pytest.mark.parametrize("form", [FORM_REF4, FORM_REF8, FORM_REF_ADDR, FORM_REF_UDATA, FORM_REF_SIG8])
    def test_reference_to_no_die(self, survive: Callable[..., str | None], form: int, offset: int) -> None:
        maker = DwarfMaker()
        unit = maker.unit()
        for tag in (TAG_TYPEDEF, TAG_POINTER, TAG_ARRAY, TAG_CONST, TAG_ENUMERATION, TAG_SUBROUTINE):
            unit.add(tag, (AT_NAME, FORM_STRING, "x"), (AT_TYPE, form, offset))
        struct_ = unit.add(TAG_STRUCT, (AT_GNU_ANNOTATION, form, offset), (AT_SPECIFICATION, form, offset))
        struct_.add(TAG_MEMBER, (AT_TYPE, form, offset), (AT_GNU_ANNOTATION, form, offset))
        function = unit.add(TAG_FUNCTION, (AT_ORIGIN, form, offset), (AT_SPECIFICATION, form, offset))
        function.add(TAG_PARAMETER, (AT_ORIGIN, form, offset))
        unit.add(TAG_POINTER, (AT_GNU_ANNOTATION, form, offset))
        survive(maker.build())

    @pytest.mark.parametrize("form", [FORM_STRP, FORM_LINE_STRP, FORM_STRX, FORM_STRX1, FORM_STRX4, FORM_GNU_STR_INDEX])
    @pytest.mark.parametrize("at", [100, 0x7FFFFFFF, 0xFFFFFFFF])
    def test_strings_outside(self, survive: Callable[..., str | None], form: int, at: int) -> None:
        maker = DwarfMaker()
        value = Raw(uleb(at)) if form in (FORM_STRX, FORM_GNU_STR_INDEX) else Raw(maker.number(at, 4))
        maker.unit().add(TAG_TYPEDEF, (AT_NAME, form, value))
        assert "string outside of its section" in (survive(maker.build()) or "")

    def test_sibling(self, survive: Callable[..., str | None]) -> None:
        for offset in (*range(60), 0x7FFFFFFF, 0xFFFFFFFF):
            maker = DwarfMaker()
            unknown = maker.unit().add(0x4000, (AT_SIBLING, FORM_REF4, offset))
            unknown.add(0x4001, (AT_SIBLING, FORM_REF4, offset)).add(0x4002)
            survive(maker.build())

    def test_abbreviations(self, survive: Callable[..., str | None]) -> None:
        unit_die = bytes([TAG_COMPILE_UNIT, 1, AT_NAME, FORM_STRING, 0, 0])
        for codes in ([2], [1, 1], [3, 1, 1, 1 << 63], [(1 << 64) - 1], [1 << 70, 1]):
            for body in (
                b"\1x\0\1x\0",
                b"\2",
                b"\3",
                uleb(1 << 63) + b"x\0",
                uleb((1 << 64) - 1) + b"x\0",
                b"\xff" * 30,
            ):
                maker = DwarfMaker()
                unit = maker.unit()
                unit.set_abbrevs(b"".join(uleb(code) + unit_die for code in codes) + b"\0")
                unit.body = body
                survive(maker.build())


class TestCycles:
    """Types and functions that lead back to themselves."""

    @pytest.mark.parametrize("tag", [TAG_POINTER, TAG_CONST, TAG_VOLATILE, TAG_ARRAY, TAG_SUBROUTINE])
    @pytest.mark.parametrize("length", [1, 2, 5])
    def test_references(self, survive: Callable[..., str | None], tag: int, length: int) -> None:
        maker = DwarfMaker()
        unit = maker.unit()
        dies = [unit.add(tag) for _ in range(length)]
        for i, die in enumerate(dies):
            die.attributes.append((AT_TYPE, FORM_REF4, dies[(i + 1) % length]))
        assert "in a circle" in (survive(maker.build()) or "")

    def test_parameters(self, survive: Callable[..., str | None]) -> None:
        maker = DwarfMaker()
        proto = maker.unit().add(TAG_SUBROUTINE)
        proto.add(TAG_PARAMETER, (AT_TYPE, FORM_REF4, proto))
        assert "in a circle" in (survive(maker.build()) or "")

    @pytest.mark.parametrize("length", [1, 2, 3])
    def test_by_value(self, survive: Callable[..., str | None], length: int) -> None:
        # A function that takes it makes layouts and sizes be looked at.
        for tag in (TAG_STRUCT, TAG_TYPEDEF):
            maker = DwarfMaker()
            unit = maker.unit()
            maker.function("f")
            dies = [
                unit.add(tag, (AT_NAME, FORM_STRING, f"x{i}"), (AT_BYTE_SIZE, FORM_DATA1, 8)) for i in range(length)
            ]
            for i, die in enumerate(dies):
                target = dies[(i + 1) % length]
                if tag == TAG_TYPEDEF:
                    die.attributes.append((AT_TYPE, FORM_REF4, target))
                else:
                    array = unit.add(TAG_ARRAY, (AT_TYPE, FORM_REF4, target))
                    for inner in (target, array):
                        die.add(TAG_MEMBER, (AT_TYPE, FORM_REF4, inner), (AT_BIT_SIZE, FORM_DATA1, 3))
                        die.add(TAG_MEMBER, (AT_TYPE, FORM_REF4, inner))
            function = unit.add(TAG_FUNCTION, (AT_NAME, FORM_STRING, "f"))
            for _ in range(10):
                function.add(TAG_PARAMETER, (AT_NAME, FORM_STRING, "p"), (AT_TYPE, FORM_REF4, dies[0]))
            place = b"\x03" + maker.number(TEXT, 8)
            where = (AT_LOCATION, FORM_EXPRLOC, place)
            unit.add(TAG_VARIABLE, (AT_NAME, FORM_STRING, "v"), (AT_TYPE, FORM_REF4, dies[0]), where)
            assert survive(maker.build()) is None

    @pytest.mark.parametrize("attribute", [AT_ORIGIN, AT_SPECIFICATION])
    @pytest.mark.parametrize("tag", [TAG_FUNCTION, TAG_VARIABLE, TAG_STRUCT])
    @pytest.mark.parametrize("length", [1, 2])
    def test_origins(self, survive: Callable[..., str | None], attribute: int, tag: int, length: int) -> None:
        maker = DwarfMaker()
        unit = maker.unit()
        dies = [unit.add(tag) for _ in range(length)]
        for i, die in enumerate(dies):
            die.attributes.append((attribute, FORM_REF4, dies[(i + 1) % length]))
            parameter = die.add(TAG_PARAMETER)
            parameter.attributes.append((AT_ORIGIN, FORM_REF4, parameter))
        assert survive(maker.build()) is None

    @pytest.mark.parametrize("kind", ["btf_decl_tag", "btf_type_tag", "other"])
    @pytest.mark.parametrize("length", [1, 2])
    def test_annotations(self, survive: Callable[..., str | None], kind: str, length: int) -> None:
        for tag in (TAG_STRUCT, TAG_POINTER, TAG_FUNCTION):
            maker = DwarfMaker()
            unit = maker.unit()
            chain = [
                unit.add(TAG_GNU_ANNOTATION, (AT_NAME, FORM_STRING, kind), (AT_CONST_VALUE, FORM_STRING, "x"))
                for _ in range(length)
            ]
            for i, die in enumerate(chain):
                die.attributes.append((AT_GNU_ANNOTATION, FORM_REF4, chain[(i + 1) % length]))
            unit.add(tag, (AT_GNU_ANNOTATION, FORM_REF4, chain[0]))
            line = survive(maker.build())
            assert line is None or "endless chain of annotations" in line


def repeated(build: Callable[[DwarfMaker, Unit], bytes], language: int = LANG_C11, **extra: Any) -> bytes:
    """A file of one unit, whose DIEs `build` returns as bytes."""
    maker = DwarfMaker()
    unit = maker.unit()
    root = bytes([unit.abbrev(TAG_COMPILE_UNIT, True, (AT_LANGUAGE, FORM_DATA1)), language])
    unit.body = root + build(maker, unit)
    return maker.build(maker.sections() | {f".debug_{name}": data for name, data in extra.items()})


FIRST = 12 + 2
"""The offset of the first DIE that `build` of `repeated` writes."""
NAME, TYPE = (AT_NAME, FORM_STRING), (AT_TYPE, FORM_REF4)


class TestCounts:
    """More of something than BTF can count, or than anybody has."""

    @pytest.mark.parametrize(
        ("outer", "inner", "count"),
        [
            (TAG_STRUCT, TAG_MEMBER, 65536),
            (TAG_ENUMERATION, TAG_ENUMERATOR, 65536),
            (TAG_SUBROUTINE, TAG_PARAMETER, 65535),
        ],
    )
    def test_children(self, withstand: Callable[..., str | None], outer: int, inner: int, count: int) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            return bytes([unit.abbrev(outer, True)]) + (bytes([unit.abbrev(inner, False, NAME)]) + b"A\0") * count

        assert "than BTF can count" in (withstand(repeated(build)) or "")

    def test_elements(self, survive: Callable[..., str | None]) -> None:
        for form, value in ((FORM_DATA8, -1), (FORM_DATA8, 1 << 63), (FORM_SDATA, -2), (FORM_UDATA, (1 << 64) - 1)):
            for attribute in (AT_UPPER_BOUND, AT_COUNT):
                maker = DwarfMaker()
                unit = maker.unit()
                array = unit.add(TAG_ARRAY, (AT_TYPE, FORM_REF4, unit.base_type("int", 4)))
                for _ in range(100):
                    array.add(TAG_SUBRANGE, (attribute, form, value))
                assert survive(maker.build()) is None

    @pytest.mark.parametrize("tag", [TAG_STRUCT, TAG_BLOCK, TAG_NAMESPACE, TAG_FUNCTION, 0x4000])
    def test_nesting(self, withstand: Callable[..., str | None], tag: int) -> None:
        line = withstand(repeated(lambda maker, unit: bytes([unit.abbrev(tag, True)]) * 1_000_000))
        assert line is None or "nested too deep" in line

    @pytest.mark.parametrize("step", [-5, 5], ids=["back", "forward"])
    def test_pointers_to_pointers(self, withstand: Callable[..., str | None], step: int) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            code = bytes([unit.abbrev(TAG_POINTER, False, TYPE)])
            return b"".join(code + maker.number(FIRST + 5 * i + step, 4) for i in range(1_000_000))

        assert withstand(repeated(build)) is None

    def test_linked_structs(self, withstand: Callable[..., str | None]) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            struct_ = unit.abbrev(TAG_STRUCT, True)
            head = bytes([unit.abbrev(TAG_POINTER, False, TYPE)])
            body = bytes([struct_, unit.abbrev(TAG_MEMBER, False, TYPE)])
            return b"".join(
                head + maker.number(at + 5, 4) + body + maker.number(at + 12, 4) + b"\0"
                for at in range(FIRST, FIRST + 12 * 300_000, 12)
            )

        withstand(repeated(build))

    @pytest.mark.parametrize("jobs", [1, 8])
    def test_tiny_units(self, withstand: Callable[..., str | None], jobs: int) -> None:
        maker = DwarfMaker()
        maker.unit().base_type("int", 4)
        sections = maker.sections()
        sections[".debug_info"] *= 50_000
        assert withstand(maker.build(sections), jobs=jobs) is None
        maker.unit()
        empty = maker.number(8, 4) + maker.number(5, 2) + b"\1\x08" + maker.number(0, 4)
        assert withstand(maker.build(sections | {".debug_info": empty * 500_000}), jobs=jobs) is None


class TestQuadratic:
    """Small files whose reading would take forever, or all memory, if each part were read anew for each use."""

    def test_abbreviation_tables_in_turns(self, withstand: Callable[..., str | None]) -> None:
        maker = DwarfMaker()
        unit = b"\1\x11\0\0\0" + b"\2\x11\0\0\0"
        table = unit + b"".join(uleb(code) + b"\x24\0\0\0" for code in range(3, 150_000)) + b"\0"
        head = maker.number(9, 4) + maker.number(5, 2) + b"\1\x08"
        units = (head + maker.number(0, 4) + b"\1" + head + maker.number(5, 4) + b"\2") * 20_000
        assert "abbreviation tables" in (withstand(maker.build({".debug_info": units, ".debug_abbrev": table})) or "")

    @pytest.mark.parametrize(("form", "section"), [(FORM_STRP, "str"), (FORM_LINE_STRP, "line_str")])
    def test_strings_within_strings(self, withstand: Callable[..., str | None], form: int, section: str) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            code = bytes([unit.abbrev(TAG_TYPEDEF, False, (AT_NAME, form))])
            return b"".join(code + maker.number(at, 4) for at in range(50_000))

        assert "string" in (withstand(repeated(build, LANG_C11, **{section: b"a" * 1_000_000 + b"\0"})) or "")

    @pytest.mark.parametrize("kind", [0x11, 0x12], ids=["objects", "functions"])
    @pytest.mark.parametrize("size", [60_000, 1_000_000])
    def test_symbols_within_symbols(self, withstand: Callable[..., str | None], kind: int, size: int) -> None:
        elf = ElfMaker()
        text = elf.section(".text", bytes(16))
        strings = elf.section(".strtab", b"\0" + b"a" * size + b"\0", type=SHT_STRTAB)
        for name, data in small().sections().items():
            elf.section(name, data)
        symbols = b"".join(struct.pack("<IBBHQQ", at, kind, 0, text, 0x1000, 4) for at in range(1, 40_000))
        elf.section(".symtab", symbols, type=SHT_SYMTAB, link=strings, entsize=24)
        withstand(elf.build())

    def test_definitions_and_symbols_of_one_function(self, withstand: Callable[..., str | None]) -> None:
        maker = DwarfMaker()
        unit = maker.unit()
        root = bytes([unit.abbrev(TAG_COMPILE_UNIT, True, (AT_LANGUAGE, FORM_DATA1)), LANG_C11])
        code = unit.abbrev(TAG_FUNCTION, True, NAME, (AT_LOW_PC, FORM_ADDR))
        parameter = bytes([unit.abbrev(TAG_PARAMETER, False, NAME, (AT_CONST_VALUE, FORM_DATA1))]) + b"a\0\0"
        unit.body = root + (bytes([code]) + b"f\0" + maker.number(TEXT, 8) + parameter + b"\0") * 3_000
        for number in range(3_000):
            maker.function(f"f.x{number}")
        for features in ("default", "all"):
            withstand(maker.build(), features)
        unit.body = root + (bytes([code]) + b"f\0" + maker.number(TEXT, 8) + b"\0") * 60_000
        for number in range(27_000):
            maker.function(f"f.y{number}")
        assert "definitions and" in (withstand(maker.build()) or "")

    def test_definitions_without_and_with_code(self, withstand: Callable[..., str | None]) -> None:
        maker = DwarfMaker()
        unit = maker.unit()
        maker.function("f")
        root = bytes([unit.abbrev(TAG_COMPILE_UNIT, True, (AT_LANGUAGE, FORM_DATA1)), LANG_C11])
        without = bytes([unit.abbrev(TAG_FUNCTION, False, NAME)]) + b"f\0"
        code = bytes([unit.abbrev(TAG_FUNCTION, False, NAME, (AT_LOW_PC, FORM_ADDR))]) + b"f\0" + maker.number(TEXT, 8)
        unit.body = root + without * 150_000 + code * 150_000
        assert withstand(maker.build()) is None

    @pytest.mark.parametrize("depth", [200_000, 40])
    def test_deep_function_types(self, withstand: Callable[..., str | None], depth: int) -> None:
        """Definitions whose types differ only at the end: a chain of prototypes; or a tree of them, without sharing."""
        maker = DwarfMaker()
        unit = maker.unit()
        maker.function("f")
        body = bytearray([unit.abbrev(TAG_COMPILE_UNIT, True, (AT_LANGUAGE, FORM_DATA1)), LANG_C11])
        base = unit.abbrev(TAG_BASE, False, NAME, (AT_BYTE_SIZE, FORM_DATA1))
        proto = unit.abbrev(TAG_SUBROUTINE, True, TYPE)
        parameter = unit.abbrev(TAG_PARAMETER, False, TYPE)
        function = unit.abbrev(TAG_FUNCTION, False, NAME, TYPE, (AT_LOW_PC, FORM_ADDR))
        for name in b"ab":
            at = 12 + len(body)
            body += bytes([base, name]) + b"\0\4"
            for _ in range(depth):
                start = 12 + len(body)
                body += bytes([proto]) + maker.number(at, 4)
                body += bytes([parameter]) + maker.number(at, 4) if depth < 100 else b""
                body += b"\0"
                at = start
            body += (bytes([function]) + b"f\0" + maker.number(at, 4) + maker.number(TEXT, 8)) * (
                3_000 if depth < 100 else 1
            )
        unit.body = bytes(body)
        withstand(maker.build())

    DECL_TAG = b"btf_decl_tag\0x\0"

    @staticmethod
    def annotation(maker: DwarfMaker, unit: Unit) -> bytes:
        code = unit.abbrev(TAG_LLVM_ANNOTATION, False, (AT_NAME, FORM_STRP), (AT_CONST_VALUE, FORM_STRP))
        return bytes([code]) + maker.number(0, 4) + maker.number(13, 4)

    def test_tags_of_functions(self, withstand: Callable[..., str | None]) -> None:
        maker = DwarfMaker()
        unit = maker.unit()
        maker.function("f")
        root = bytes([unit.abbrev(TAG_COMPILE_UNIT, True, (AT_LANGUAGE, FORM_DATA1)), LANG_C11])
        tag = self.annotation(maker, unit)
        plain = bytes([unit.abbrev(TAG_FUNCTION, False, NAME)]) + b"f\0"
        unit.body = (
            root + plain * 100_000 + bytes([unit.abbrev(TAG_FUNCTION, True, NAME)]) + b"g\0" + tag * 50_000 + b"\0"
        )
        assert withstand(maker.build(maker.sections() | {".debug_str": self.DECL_TAG})) is None

    def test_tags_out_of_order(self, withstand: Callable[..., str | None]) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            tag = self.annotation(maker, unit)
            head = bytes([unit.abbrev(TAG_STRUCT, True)])
            return head + tag * 60_000 + (head + tag + b"\0") * 60_000 + b"\0"

        assert withstand(repeated(build, str=self.DECL_TAG)) is None

    @pytest.mark.parametrize(
        ("tag", "strings"),
        [
            (TAG_STRUCT, b"btf_decl_tag\0x\0"),
            (TAG_POINTER, b"btf_type_tag\0x\0"),
            (TAG_STRUCT, b"something\0\0\0\0x\0"),
        ],
    )
    def test_chains_of_annotations_that_many_share(
        self, withstand: Callable[..., str | None], tag: int, strings: bytes
    ) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            text = maker.number(0, 4) + maker.number(13, 4)
            attributes = ((AT_NAME, FORM_STRP), (AT_CONST_VALUE, FORM_STRP), (AT_GNU_ANNOTATION, FORM_REF4))
            code = bytes([unit.abbrev(TAG_GNU_ANNOTATION, False, *attributes)])
            chain = b"".join(code + text + maker.number(FIRST + 13 * i + 13, 4) for i in range(900))
            return chain + bytes([unit.abbrev(tag, False, (AT_GNU_ANNOTATION, FORM_REF1)), FIRST]) * 150_000

        assert "share a long chain" in (withstand(repeated(build, str=strings)) or "")

    def test_signatures(self, withstand: Callable[..., str | None]) -> None:
        maker = DwarfMaker()
        unit = maker.unit()
        root = bytes([unit.abbrev(TAG_COMPILE_UNIT, True, (AT_LANGUAGE, FORM_DATA1)), LANG_C11])
        pointer = bytes([unit.abbrev(TAG_POINTER, False, (AT_TYPE, FORM_REF_SIG8))])
        unit.body = root + (pointer + maker.number(77, 8)) * 100_000
        sections = maker.sections()
        header = maker.number(5, 2) + b"\2\x08" + maker.number(0, 4) + maker.number(5, 8) + maker.number(0, 4)
        sections[".debug_info"] += (maker.number(len(header), 4) + header) * 30_000
        assert withstand(maker.build(sections)) is None

    def test_enumerations_of_one_name(self, withstand: Callable[..., str | None]) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            forward = bytes([unit.abbrev(TAG_ENUMERATION, False, NAME)]) + b"e\0"
            head = bytes([unit.abbrev(TAG_ENUMERATION, True, NAME)]) + b"e\0"
            value = bytes([unit.abbrev(TAG_ENUMERATOR, False, NAME, (AT_CONST_VALUE, FORM_DATA4))]) + b"A\0"
            return forward + b"".join(head + value + maker.number(i, 4) + b"\0" for i in range(60_000))

        withstand(repeated(build))

    def test_structs_that_differ_in_what_they_refer_to(self, withstand: Callable[..., str | None]) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            array = bytes([unit.abbrev(TAG_ARRAY, True), unit.abbrev(TAG_SUBRANGE, False, (AT_COUNT, FORM_DATA4))])
            head = bytes([unit.abbrev(TAG_STRUCT, True), unit.abbrev(TAG_MEMBER, False, TYPE)])
            return b"".join(
                array + maker.number(i, 4) + b"\0" + head + maker.number(FIRST + 14 * i, 4) + b"\0"
                for i in range(60_000)
            )

        assert "differ only in what they refer to" in (withstand(repeated(build)) or "")

    def test_location_lists_that_many_share(self, withstand: Callable[..., str | None]) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            head = bytes([unit.abbrev(TAG_FUNCTION, True)])  # (those of a name that no symbol has are not looked at)
            code = unit.abbrev(TAG_PARAMETER, False, (AT_LOCATION, FORM_SEC_OFFSET))
            return head + (bytes([code]) + maker.number(0, 4)) * 60_000 + b"\0"

        assert "location lists" in (withstand(repeated(build, loclists=b"\1\0" * 250_000 + b"\0")) or "")

    def test_members_of_rust_in_reverse(self, withstand: Callable[..., str | None]) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            head = bytes([unit.abbrev(TAG_STRUCT, True)])
            code = bytes([unit.abbrev(TAG_MEMBER, False, (AT_MEMBER_LOCATION, FORM_DATA4))])
            return (head + b"".join(code + maker.number(65_535 - i, 4) for i in range(65_535)) + b"\0") * 4

        withstand(repeated(build, LANG_RUST))

    def test_typedef_of_itself_as_every_parameter(self, withstand: Callable[..., str | None]) -> None:
        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            alias = bytes([unit.abbrev(TAG_TYPEDEF, False, NAME, (AT_TYPE, FORM_REF1))]) + b"t\0" + bytes([FIRST])
            head = bytes([unit.abbrev(TAG_FUNCTION, True, NAME)]) + b"f\0"
            return alias + head + bytes([unit.abbrev(TAG_PARAMETER, False, (AT_TYPE, FORM_REF1)), FIRST]) * 60_000

        assert withstand(repeated(build)) is None

    def test_strings_that_would_collide_if_the_hash_were_known(self, withstand: Callable[..., str | None]) -> None:
        multiplier, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1
        draw = random.Random(1)

        def colliding() -> Iterator[bytes]:
            while True:
                word = draw.randbytes(8)
                hashed = (int.from_bytes(word, "little") ^ 16) * multiplier & mask
                text = word + (hashed ^ hashed >> 29 ^ 0x123456789ABCDEF).to_bytes(8, "little")
                if 0 not in text:
                    yield text

        def build(maker: DwarfMaker, unit: Unit) -> bytes:
            code = bytes([unit.abbrev(TAG_TYPEDEF, False, NAME)])
            texts = colliding()
            return b"".join(code + next(texts) + b"\0" for _ in range(50_000))

        assert withstand(repeated(build)) is None

    def test_kfunc_sets(self, withstand: Callable[..., str | None]) -> None:
        elf = ElfMaker()
        ids = elf.section(".BTF_ids", struct.pack("<II", 1, 1) + bytes(1000))
        for name, data in small().sections().items():
            elf.section(name, data)
        for number in range(15_000):
            elf.symbol(f"__BTF_ID__set8__s{number}", size=8, info=1, shndx=ids)
            elf.symbol(f"__BTF_ID__func__f__{number}", value=100, info=1, shndx=ids)
        assert withstand(elf.build()) is None


SOURCE = """
struct node { struct node *next; int bits : 3, more : 7; union { long l; char c[3][4]; }; } __attribute__((packed));
enum color { RED, GREEN = 0x7fffffff }; enum big { BIG = 1ll << 40 };
typedef int (*callback)(struct node *, ...);
struct later; static double ratio = 1; int numbers[10] = {1};
__attribute__((noinline)) static int work(struct node n, callback f, const volatile char *restrict s)
{ return f(&n, s) + numbers[n.bits]; }
int call(struct node *n, callback f, enum color c, enum big b) { ratio *= 2; return work(*n, f, "x") + c + b; }
_Bool flag(struct later *l, float x) { return l && x > 1; }
#ifdef __SIZEOF_INT128__
__int128 wide(__int128 i) { return i * 3; }
#endif
"""


class TestRandom:
    """Real files, with random bytes changed."""

    FLAGS = (("-gdwarf-5",), ("-gdwarf-4", "-O0"), ("-gdwarf-3",), ("-gdwarf-2", "-m32"), ("-gdwarf-5", "-gdwarf64"))
    ROUNDS = 300

    @pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
    def test_changed_bytes(
        self, build: Callable[..., Path], compiler: str, survive: Callable[..., str | None], flags: tuple[str, ...]
    ) -> None:
        good = build(SOURCE, *flags, "-ffreestanding", "-fno-stack-protector", cc=compiler).read_bytes()
        assert survive(good) is None
        draw = random.Random(" ".join(flags))
        for _ in range(self.ROUNDS):
            data = bytearray(good)
            for _ in range(draw.choice((1, 1, 2, 5, 50))):
                at = draw.randrange(len(data))
                data[at] = draw.choice((data[at] ^ 1 << draw.randrange(8), draw.randrange(256), 0, 0xFF))
            if draw.random() < 0.1:
                del data[draw.randrange(len(data)) :]
            survive(bytes(data))

    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(table=st.binary(max_size=80), body=st.binary(max_size=120))
    def test_any_dies(self, survive: Callable[..., str | None], table: bytes, body: bytes) -> None:
        maker = small()
        unit = maker.units[0]
        unit.set_abbrevs(bytes([1, TAG_COMPILE_UNIT, 1, 0, 0]) + table)
        unit.body = b"\1" + body
        survive(maker.build())

    ATTRIBUTES = st.tuples(
        st.sampled_from([AT_NAME, AT_TYPE, AT_BYTE_SIZE, AT_LOCATION, AT_MEMBER_LOCATION, AT_BIT_SIZE,
                         AT_BIT_OFFSET, AT_CONST_VALUE, AT_ORIGIN, AT_SPECIFICATION, AT_GNU_ANNOTATION, AT_SIBLING,
                         AT_COUNT, AT_LOW_PC]),
        st.sampled_from([FORM_STRING, FORM_STRP, FORM_DATA1, FORM_REF1, FORM_REF_UDATA, FORM_EXPRLOC, FORM_SEC_OFFSET,
                         FORM_SDATA, FORM_LOCLISTX, FORM_FLAG_PRESENT, FORM_INDIRECT, FORM_ADDR, FORM_STRX]),
    )  # fmt: skip
    TAGS = st.sampled_from([TAG_STRUCT, TAG_UNION, TAG_MEMBER, TAG_POINTER, TAG_ARRAY, TAG_SUBRANGE, TAG_TYPEDEF,
                            TAG_ENUMERATION, TAG_ENUMERATOR, TAG_SUBROUTINE, TAG_PARAMETER, TAG_FUNCTION, TAG_VARIABLE,
                            TAG_BASE, TAG_CONST, TAG_GNU_ANNOTATION, TAG_LLVM_ANNOTATION, TAG_BLOCK])  # fmt: skip

    @settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        abbrevs=st.lists(st.tuples(TAGS, st.booleans(), st.lists(ATTRIBUTES, max_size=4)), min_size=1, max_size=6),
        body=st.lists(st.one_of(st.integers(0, 8), st.integers(0, 255)), max_size=150),
    )
    def test_likely_dies(
        self,
        survive: Callable[..., str | None],
        abbrevs: list[tuple[int, bool, list[tuple[int, int]]]],
        body: list[int],
    ) -> None:
        maker = small()
        unit = maker.units[0]
        table = bytes([1, TAG_COMPILE_UNIT, 1, 0, 0])
        for code, (tag, children, attributes) in enumerate(abbrevs, 2):
            table += uleb(code) + uleb(tag) + bytes([children])
            table += b"".join(uleb(name) + uleb(form) for name, form in attributes) + b"\0\0"
        unit.set_abbrevs(table + b"\0")
        unit.body = b"\1" + bytes(body)
        survive(maker.build())
