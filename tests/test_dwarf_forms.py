# SPDX-License-Identifier: GPL-2.0-only
# ruff: noqa: F403, F405 (dwarfmaker's constants are the vocabulary of these tests)
"""Every form of DWARF 5, section 7.5.6, and what is made of it.

Each test writes a valid file that uses one form, and looks for the value in the BTF.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import btfstep
from btfstep.errors import FormatError
from dwarfmaker import *

DW_OP_ADDR, DW_OP_PLUS_UCONST, DW_OP_REG0, DW_OP_ADDRX = 0x03, 0x23, 0x50, 0xA1
RDI, RBX = DW_OP_REG0 + 5, DW_OP_REG0 + 3

STRINGS = (FORM_STRING, FORM_STRP, FORM_LINE_STRP, *STRING_INDEX)
NUMBERS = (FORM_DATA1, FORM_DATA2, FORM_DATA4, FORM_DATA8, FORM_UDATA, FORM_SDATA, FORM_IMPLICIT_CONST)
REFERENCES = (FORM_REF1, FORM_REF2, FORM_REF4, FORM_REF8, FORM_REF_UDATA, FORM_REF_ADDR)
ADDRESSES = (FORM_ADDR, *ADDRESS_INDEX)
BLOCKS = tuple(BLOCK_LENGTH)
SUPPLEMENTARY = (FORM_REF_SUP4, FORM_REF_SUP8, FORM_STRP_SUP, FORM_GNU_REF_ALT, FORM_GNU_STRP_ALT)
INDICES = tuple(form for form, size in {**STRING_INDEX, **ADDRESS_INDEX}.items() if size == 0)


@pytest.fixture(
    params=[
        pytest.param(
            (version, dwarf64, big, bits), id=f"v{version}-{64 if dwarf64 else 32}-{'BE' if big else 'LE'}-{bits}"
        )
        for version, dwarf64, big, bits in (
            *((2, False, False, 64), (2, False, True, 32), (3, True, False, 64), (3, False, True, 32)),
            *((4, False, False, 64), (4, True, True, 64), (4, False, False, 32)),
            *((5, False, False, 64), (5, True, True, 32), (5, True, False, 64), (5, False, True, 64)),
        )
    ]
)
def maker(request: pytest.FixtureRequest) -> DwarfMaker:
    """A file of each version, offset size, byte order and address size."""
    version, dwarf64, big, bits = request.param
    return DwarfMaker(version=version, dwarf64=dwarf64, big_endian=big, bits=bits)


class Encoder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, maker: DwarfMaker, features: str = "default") -> list[BtfType]:
        """The types that the file becomes."""
        self.path.write_bytes(maker.build())
        return read_btf(btfstep.encode(self.path, features=features), big_endian=maker.big_endian)

    def one(self, maker: DwarfMaker, kind: str, features: str = "default") -> BtfType:
        """The only type of this kind."""
        (found,) = [found for found in self(maker, features) if found.kind == kind]
        return found


@pytest.fixture
def encode(tmp_path: Path) -> Encoder:
    return Encoder(tmp_path / "file")


def unit_of(maker: DwarfMaker) -> Unit:
    """A unit that says where its tables of strings, addresses and lists are."""
    return maker.unit(
        (AT_LANGUAGE, FORM_DATA1, LANG_C11),
        (AT_STR_OFFSETS_BASE, FORM_SEC_OFFSET, BASE),
        (AT_ADDR_BASE, FORM_SEC_OFFSET, BASE),
        (AT_LOCLISTS_BASE, FORM_SEC_OFFSET, BASE),
    )


class TestStrings:
    @pytest.mark.parametrize("form", STRINGS, ids=hex)
    def test_name(self, maker: DwarfMaker, encode: Encoder, form: int) -> None:
        unit = unit_of(maker)
        unit.add(TAG_TYPEDEF, (AT_NAME, form, "first_name"))
        unit.add(TAG_TYPEDEF, (AT_NAME, form, "second_name"))
        assert [found.name for found in encode(maker)] == ["", "first_name", "second_name"]

    @pytest.mark.parametrize("form", STRINGS, ids=hex)
    def test_the_form_may_stand_in_the_die(self, maker: DwarfMaker, encode: Encoder, form: int) -> None:
        unit_of(maker).add(TAG_TYPEDEF, (AT_NAME, FORM_INDIRECT, (form, "named")))
        assert encode.one(maker, "TYPEDEF").name == "named"

    def test_each_unit_has_its_own_table(self, maker: DwarfMaker, encode: Encoder) -> None:
        for name in ("one", "two", "three"):
            unit_of(maker).add(TAG_TYPEDEF, (AT_NAME, FORM_STRX1, name))
        assert [found.name for found in encode(maker)] == ["", "one", "two", "three"]

    def test_without_a_base_the_table_starts_behind_its_header(self, encode: Encoder) -> None:
        maker = DwarfMaker(version=5)
        maker.unit().add(TAG_TYPEDEF, (AT_NAME, FORM_STRX1, "name"))
        assert encode.one(maker, "TYPEDEF").name == "name"


class TestNumbers:
    @pytest.mark.parametrize("form", NUMBERS, ids=hex)
    def test_size(self, maker: DwarfMaker, encode: Encoder, form: int) -> None:
        unit_of(maker).add(TAG_STRUCT, (AT_NAME, FORM_STRING, "s"), (AT_BYTE_SIZE, form, 100))
        assert encode.one(maker, "STRUCT").size_or_type == 100

    @pytest.mark.parametrize("form", NUMBERS[:-1], ids=hex)
    def test_the_form_may_stand_in_the_die(self, maker: DwarfMaker, encode: Encoder, form: int) -> None:
        unit_of(maker).add(TAG_STRUCT, (AT_NAME, FORM_STRING, "s"), (AT_BYTE_SIZE, FORM_INDIRECT, (form, 100)))
        assert encode.one(maker, "STRUCT").size_or_type == 100

    @pytest.mark.parametrize(
        ("form", "value", "read"),
        [
            (FORM_DATA1, 0xFF, 0xFF),
            (FORM_DATA2, 0xFFFE, 0xFFFE),
            (FORM_DATA4, 0xFFFFFFFD, 0xFFFFFFFD),
            (FORM_DATA8, -5, 0xFFFFFFFB),
            (FORM_SDATA, -5, 0xFFFFFFFB),
            (FORM_SDATA, -(1 << 31), 0x80000000),
            (FORM_SDATA, 63, 63),
            (FORM_SDATA, 64, 64),
            (FORM_UDATA, 0xFFFFFFFF, 0xFFFFFFFF),
            (FORM_IMPLICIT_CONST, -5, 0xFFFFFFFB),
        ],
    )
    def test_signs(self, maker: DwarfMaker, encode: Encoder, form: int, value: int, read: int) -> None:
        enum = unit_of(maker).add(TAG_ENUMERATION, (AT_NAME, FORM_STRING, "e"), (AT_BYTE_SIZE, FORM_DATA1, 4))
        enum.add(TAG_ENUMERATOR, (AT_NAME, FORM_STRING, "A"), (AT_CONST_VALUE, form, value))
        assert encode.one(maker, "ENUM").rows == (("A", read),)

    @pytest.mark.parametrize(
        ("form", "value", "kind"),
        [
            (FORM_FLAG, 1, "FWD"),
            (FORM_FLAG, 2, "FWD"),
            (FORM_FLAG, 0, "STRUCT"),
            (FORM_FLAG_PRESENT, None, "FWD"),
            (FORM_IMPLICIT_CONST, 1, "FWD"),
            (FORM_IMPLICIT_CONST, 0, "STRUCT"),
            (FORM_INDIRECT, (FORM_FLAG, 1), "FWD"),
            (FORM_INDIRECT, (FORM_FLAG_PRESENT, None), "FWD"),
        ],
    )
    def test_flag(self, maker: DwarfMaker, encode: Encoder, form: int, value: Any, kind: str) -> None:
        unit_of(maker).add(TAG_STRUCT, (AT_NAME, FORM_STRING, "s"), (AT_DECLARATION, form, value))
        assert encode.one(maker, kind).name == "s"

    def test_a_number_of_16_bytes_counts_as_none(self, maker: DwarfMaker, encode: Encoder) -> None:
        unit_of(maker).add(TAG_STRUCT, (AT_BYTE_SIZE, FORM_DATA16, 100), (AT_NAME, FORM_STRING, "s"))
        found = encode.one(maker, "STRUCT")
        assert (found.name, found.size_or_type) == ("s", 0)

    def test_of_an_attribute_given_twice_the_first_counts(self, maker: DwarfMaker, encode: Encoder) -> None:
        unit_of(maker).add(TAG_STRUCT, (AT_BYTE_SIZE, FORM_DATA1, 1), (AT_BYTE_SIZE, FORM_DATA1, 2))
        assert encode.one(maker, "STRUCT").size_or_type == 1


class TestReferences:
    @pytest.mark.parametrize("form", REFERENCES, ids=hex)
    @pytest.mark.parametrize("forward", [False, True], ids=["back", "forward"])
    @pytest.mark.parametrize("indirect", [False, True], ids=["direct", "indirect"])
    def test_type(self, maker: DwarfMaker, encode: Encoder, form: int, forward: bool, indirect: bool) -> None:
        unit = unit_of(maker)
        target: Any = None if forward else unit.base_type("int", 4)
        alias = unit.add(TAG_TYPEDEF, (AT_NAME, FORM_STRING, "alias"))
        if forward:
            target = unit.base_type("int", 4)
        alias.attributes.append((AT_TYPE, FORM_INDIRECT, (form, target)) if indirect else (AT_TYPE, form, target))
        types = encode(maker)
        assert types[encode.one(maker, "TYPEDEF").size_or_type].name == "int"

    def test_of_another_unit(self, maker: DwarfMaker, encode: Encoder) -> None:
        target = unit_of(maker).base_type("int", 4)
        unit_of(maker).add(TAG_TYPEDEF, (AT_NAME, FORM_STRING, "alias"), (AT_TYPE, FORM_REF_ADDR, target))
        assert encode(maker)[encode.one(maker, "TYPEDEF").size_or_type].name == "int"

    @pytest.mark.parametrize("version", [4, 5])
    def test_signature(self, encode: Encoder, version: int) -> None:
        maker = DwarfMaker(version=version)
        for number in range(3):
            unit = maker.type_unit(0x1234_5678_9ABC_DEF0 + number)
            unit.type_die = unit.add(TAG_STRUCT, (AT_NAME, FORM_STRING, f"s{number}"), (AT_BYTE_SIZE, FORM_DATA1, 4))
        unit_of(maker).add(
            TAG_TYPEDEF, (AT_NAME, FORM_STRING, "alias"), (AT_TYPE, FORM_REF_SIG8, 0x1234_5678_9ABC_DEF1)
        )
        types = encode(maker)
        assert types[encode.one(maker, "TYPEDEF").size_or_type].name == "s1"

    def test_unknown_signature_is_void(self, encode: Encoder) -> None:
        maker = DwarfMaker()
        maker.type_unit(1)
        unit_of(maker).add(TAG_TYPEDEF, (AT_NAME, FORM_STRING, "alias"), (AT_TYPE, FORM_REF_SIG8, 2))
        assert encode.one(maker, "TYPEDEF").size_or_type == 0


class TestAddresses:
    """A variable, whose address its location tells; and a function, whose symbol it finds by it."""

    @pytest.mark.parametrize("form", ADDRESSES, ids=hex)
    @pytest.mark.parametrize("indirect", [False, True], ids=["direct", "indirect"])
    def test_function(self, maker: DwarfMaker, encode: Encoder, form: int, indirect: bool) -> None:
        address = maker.function("f.isra.0", 0x40)
        value = (FORM_INDIRECT, (form, address)) if indirect else (form, address)
        unit_of(maker).add(TAG_FUNCTION, (AT_NAME, FORM_STRING, "f"), (AT_LOW_PC, *value))
        assert encode.one(maker, "FUNC", "default,true_signature").name == "f.isra.0"

    @pytest.mark.parametrize("form", BLOCKS, ids=hex)
    def test_variable(self, maker: DwarfMaker, encode: Encoder, form: int) -> None:
        unit = unit_of(maker)
        number = unit.base_type("int", 4)
        location = bytes([DW_OP_ADDR]) + maker.number(TEXT + 0x24, maker.bits // 8)
        unit.add(TAG_VARIABLE, (AT_NAME, FORM_STRING, "v"), (AT_TYPE, FORM_REF4, number), (AT_LOCATION, form, location))
        assert encode.one(maker, "DATASEC", "default,global_var").rows[0][1:] == (0x24, 4)

    def test_variable_at_an_index(self, maker: DwarfMaker, encode: Encoder) -> None:
        unit = unit_of(maker)
        number = unit.base_type("int", 4)
        # The function brings its address into the table; the variable's location refers to it.
        unit.add(TAG_FUNCTION, (AT_NAME, FORM_STRING, "f"), (AT_LOW_PC, FORM_ADDRX1, TEXT + 0x30))
        location = bytes([DW_OP_ADDRX, 0])
        unit.add(
            TAG_VARIABLE,
            (AT_NAME, FORM_STRING, "v"),
            (AT_TYPE, FORM_REF4, number),
            (AT_LOCATION, FORM_EXPRLOC, location),
        )
        assert encode.one(maker, "DATASEC", "default,global_var").rows[0][1:] == (0x30, 4)


class TestBlocks:
    @pytest.mark.parametrize("form", BLOCKS, ids=hex)
    @pytest.mark.parametrize("indirect", [False, True], ids=["direct", "indirect"])
    def test_member_location(self, maker: DwarfMaker, encode: Encoder, form: int, indirect: bool) -> None:
        unit = unit_of(maker)
        block = bytes([DW_OP_PLUS_UCONST]) + uleb(300)
        value = (FORM_INDIRECT, (form, block)) if indirect else (form, block)
        struct = unit.add(TAG_STRUCT, (AT_NAME, FORM_STRING, "s"), (AT_BYTE_SIZE, FORM_DATA2, 304))
        struct.add(
            TAG_MEMBER, (AT_NAME, FORM_STRING, "m"), (AT_TYPE, FORM_REF4, unit.base_type("int", 4)),
            (AT_MEMBER_LOCATION, *value),
        )  # fmt: skip
        assert encode.one(maker, "STRUCT").rows[0][2] == 8 * 300


class TestLocationLists:
    """A parameter that arrives where the calling convention says; or elsewhere, and the function is left out."""

    @staticmethod
    def function(maker: DwarfMaker, form: int, location: bytes | Raw) -> None:
        unit = unit_of(maker)
        number = unit.base_type("int", 4)
        address = maker.function("f")
        function = unit.add(TAG_FUNCTION, (AT_NAME, FORM_STRING, "f"), (AT_LOW_PC, FORM_ADDR, address))
        function.add(
            TAG_PARAMETER, (AT_NAME, FORM_STRING, "p"), (AT_TYPE, FORM_REF4, number), (AT_LOCATION, form, location)
        )

    @pytest.mark.parametrize(("register", "listed"), [(RDI, True), (RBX, False)])
    @pytest.mark.parametrize("form", BLOCKS, ids=hex)
    def test_one_place(self, maker: DwarfMaker, encode: Encoder, form: int, register: int, listed: bool) -> None:
        self.function(maker, form, bytes([register]))
        assert any(found.kind == "FUNC" for found in encode(maker)) == listed

    @pytest.mark.parametrize(("register", "listed"), [(RDI, True), (RBX, False)])
    def test_list(self, maker: DwarfMaker, encode: Encoder, register: int, listed: bool) -> None:
        # An entry that holds when the function is entered, and one that does not.
        size = maker.bits // 8
        entries = b"".join(
            maker.number(start, size) + maker.number(end, size) + maker.number(1, 2) + bytes([where])
            for start, end, where in ((TEXT, TEXT + 8, register), (TEXT + 8, TEXT + 16, RDI + 1))
        ) + bytes(2 * size)  # fmt: skip
        if maker.version < 4:
            maker.extra[".debug_loc"] = entries
            form = FORM_DATA8 if maker.dwarf64 else FORM_DATA4
            self.function(maker, form, Raw(maker.number(0, FIXED[form])))
        else:
            if maker.version == 5:
                entries = b"\x04\x00\x08\x01" + bytes([register]) + b"\x04\x08\x10\x01" + bytes([RDI + 1]) + b"\0"
            self.function(maker, FORM_SEC_OFFSET, entries)
        assert any(found.kind == "FUNC" for found in encode(maker)) == listed

    @pytest.mark.parametrize(("register", "listed"), [(RDI, True), (RBX, False)])
    @pytest.mark.parametrize("dwarf64", [False, True], ids=["32", "64"])
    @pytest.mark.parametrize(
        "kind",
        [b"\2\0\0", b"\3\0\4", b"\4\0\4", b"\5", b"\7" + bytes(16), b"\x08" + bytes(9)],
        ids=["startx_endx", "startx_length", "offset_pair", "default_location", "start_end", "start_length"],
    )
    def test_list_at_an_index(self, encode: Encoder, dwarf64: bool, kind: bytes, register: int, listed: bool) -> None:
        maker = DwarfMaker(version=5, dwarf64=dwarf64)
        bases = b"\1\0" + b"\6" + bytes(8)  # base_addressx, base_address
        self.function(maker, FORM_LOCLISTX, bases + kind + b"\1" + bytes([register]) + b"\0")
        assert any(found.kind == "FUNC" for found in encode(maker)) == listed


class TestSkipping:
    """An attribute that nobody knows, of whatever form, hides nothing that follows."""

    VALUES = (
        *((form, 0x7F) for form in (*FIXED, FORM_UDATA, FORM_ADDR, FORM_REF_ADDR, FORM_REF_UDATA, FORM_RNGLISTX)),
        *((form, 1000) for form in (*INDICES, FORM_LOCLISTX, *SECTION_OFFSET)),
        *((form, Raw(b"\1" * size)) for form, size in {**STRING_INDEX, **ADDRESS_INDEX}.items() if size),
        *((form, b"block") for form in BLOCKS),
        (FORM_SDATA, -1000),
        (FORM_STRING, "text"),
        (FORM_FLAG_PRESENT, None),
        (FORM_IMPLICIT_CONST, 1 << 40),
        (FORM_INDIRECT, (FORM_UDATA, 300)),
        (FORM_INDIRECT, (FORM_STRING, "text")),
        (FORM_INDIRECT, (FORM_FLAG_PRESENT, None)),
    )

    @pytest.mark.parametrize(("form", "value"), VALUES, ids=[f"{form:#x}-{value!r}" for form, value in VALUES])
    def test_one(self, maker: DwarfMaker, encode: Encoder, form: int, value: Any) -> None:
        if form in INDICES:
            value = Raw(uleb(value))
        unit = unit_of(maker)
        unit.add(
            TAG_STRUCT, (AT_UNKNOWN, form, value), (AT_NAME, FORM_STRING, "s"), (AT_UNKNOWN + 1, form, value),
            (AT_BYTE_SIZE, FORM_DATA1, 8), (AT_UNKNOWN + 2, form, value),
        )  # fmt: skip
        unit.add(TAG_TYPEDEF, (AT_NAME, FORM_STRING, "after"))
        types = encode(maker)
        assert [(found.kind, found.name) for found in types[1:]] == [("STRUCT", "s"), ("TYPEDEF", "after")]
        assert types[1].size_or_type == 8

    def test_children_of_what_nobody_knows(self, maker: DwarfMaker, encode: Encoder) -> None:
        unit = unit_of(maker)
        unknown = unit.add(0x4000, (AT_UNKNOWN, FORM_UDATA, 5))
        unknown.add(0x4001, (AT_NAME, FORM_STRING, "inner")).add(TAG_TYPEDEF, (AT_NAME, FORM_STRING, "hidden"))
        unit.add(TAG_TYPEDEF, (AT_NAME, FORM_STRING, "after"))
        assert [found.name for found in encode(maker)] == ["", "after"]

    @pytest.mark.parametrize("form", REFERENCES, ids=hex)
    def test_sibling(self, maker: DwarfMaker, encode: Encoder, form: int) -> None:
        unit = unit_of(maker)
        unknown = unit.add(0x4000)
        unknown.add(TAG_TYPEDEF, (AT_NAME, FORM_STRING, "hidden"))
        after = unit.add(TAG_TYPEDEF, (AT_NAME, FORM_STRING, "after"))
        unknown.attributes.append((AT_SIBLING, form, after))
        assert [found.name for found in encode(maker)] == ["", "after"]


class TestAbbreviations:
    @pytest.mark.parametrize("codes", [(1, 2), (2, 1), (7, 3), (1, 1 << 63), ((1 << 64) - 1, 1 << 32)])
    def test_codes_need_not_count_up(self, encode: Encoder, codes: tuple[int, int]) -> None:
        maker = DwarfMaker()
        unit = maker.unit()
        table = b""
        for code, tag, children in zip(codes, (TAG_COMPILE_UNIT, TAG_TYPEDEF), (1, 0), strict=True):
            table += uleb(code) + uleb(tag) + bytes([children, AT_NAME, FORM_STRING, 0, 0])
        unit.set_abbrevs(table + b"\0")
        unit.body = uleb(codes[0]) + b"unit.c\0" + uleb(codes[1]) + b"alias\0\0"
        assert encode.one(maker, "TYPEDEF").name == "alias"

    @pytest.mark.parametrize("form", SUPPLEMENTARY, ids=hex)
    def test_supplementary_files_are_refused(self, maker: DwarfMaker, encode: Encoder, form: int) -> None:
        unit_of(maker).add(TAG_TYPEDEF, (AT_NAME, form, 0))
        with pytest.raises(FormatError, match=r"\.debug_abbrev\+0x.*supplementary"):
            encode(maker)

    @pytest.mark.parametrize("form", [0, 2, 0x2D, 0x1F03, 0x10001, (1 << 64) - 1], ids=hex)
    def test_unknown_forms_are_refused(self, maker: DwarfMaker, encode: Encoder, form: int) -> None:
        unit_of(maker).add(TAG_TYPEDEF, (AT_UNKNOWN, form, Raw(b"")))
        with pytest.raises(FormatError, match=r"\.debug_abbrev\+0x.*unknown attribute form"):
            encode(maker)

    @pytest.mark.parametrize("form", [FORM_INDIRECT, FORM_IMPLICIT_CONST, 0x1F03], ids=hex)
    def test_no_form_to_stand_in_a_die(self, maker: DwarfMaker, encode: Encoder, form: int) -> None:
        unit_of(maker).add(TAG_TYPEDEF, (AT_NAME, FORM_INDIRECT, Raw(uleb(form) + b"\1\1")))
        with pytest.raises(FormatError, match=r"\.debug_info\+0x"):
            encode(maker)
