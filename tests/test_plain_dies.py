# SPDX-License-Identifier: GPL-2.0-only
# ruff: noqa: F403, F405 (dwarfmaker's constants are the vocabulary of these tests)
"""The common DIEs are read from known places, others step by step: both come to the same.

Each test writes one tree of DIEs twice: once with attributes of the sizes that compilers
give them, and once with each form in the DIE itself (DW_FORM_indirect), which only the
steps can read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import btfstep
from btfstep.errors import BtfstepError
from dwarfmaker import *

NAMES = st.sampled_from(["a", "next", "flags", "private_data", "x" * 40])
SCALARS = st.sampled_from([TAG_POINTER, TAG_CONST, TAG_VOLATILE, TAG_TYPEDEF])
FIELDS = st.lists(st.tuples(NAMES, st.integers(0, 0x2000)), max_size=5)

# (kind, name, children): what a unit holds, in order. Types refer to the one before them.
TYPES = st.lists(
    st.one_of(
        st.tuples(st.just("scalar"), NAMES, SCALARS),
        st.tuples(st.sampled_from(["struct", "union", "enumeration", "subroutine"]), NAMES, FIELDS),
        st.tuples(st.just("array"), NAMES, st.integers(0, 300)),
    ),
    max_size=12,
)


class Writer:
    """Writes attributes one way or the other: `plain`, or with each form in the DIE."""

    def __init__(self, plain: bool, inline: bool) -> None:
        self.plain = plain
        self.string = FORM_STRING if inline else FORM_STRP

    def __call__(self, attribute: int, form: int, value: Any) -> tuple[int, int, Any]:
        return (attribute, form, value) if self.plain else (attribute, FORM_INDIRECT, (form, value))

    def name(self, name: str) -> tuple[int, int, Any]:
        return self(AT_NAME, self.string, name)

    def number(self, attribute: int, value: int) -> tuple[int, int, Any]:
        return self(attribute, FORM_DATA1 if value < 256 else FORM_DATA2, value)


def build(types: list[tuple[str, str, Any]], write: Writer, big_endian: bool) -> bytes:
    """A file of two units that hold the same, so that the second one meets nothing new."""
    maker = DwarfMaker(version=5, big_endian=big_endian)
    for _ in range(2):
        fill(maker.unit((AT_LANGUAGE, FORM_DATA1, LANG_C11)), types, write)
    return maker.build()


def fill(unit: Unit, types: list[tuple[str, str, Any]], write: Writer) -> None:
    last: Any = unit.add(
        TAG_BASE, write.name("int"), write.number(AT_BYTE_SIZE, 4), write.number(AT_ENCODING, ATE_SIGNED)
    )
    for kind, name, detail in types:
        refers = write(AT_TYPE, FORM_REF4, last)
        if kind == "scalar":
            last = unit.add(detail, *([write.name(name)] if detail == TAG_TYPEDEF else []), refers)
        elif kind == "array":
            last = unit.add(TAG_ARRAY, refers)
            last.add(TAG_SUBRANGE, refers, write.number(AT_UPPER_BOUND, detail))
        elif kind == "subroutine":
            last = unit.add(TAG_SUBROUTINE, refers)
            for field, _ in detail:
                last.add(TAG_PARAMETER, write.name(field), refers)
        elif kind == "enumeration":
            last = unit.add(TAG_ENUMERATION, write.name(name), write.number(AT_BYTE_SIZE, 4))
            for field, value in detail:
                last.add(TAG_ENUMERATOR, write.name(field), write.number(AT_CONST_VALUE, value))
        else:
            tag = TAG_STRUCT if kind == "struct" else TAG_UNION
            last = unit.add(tag, write.name(name), write.number(AT_BYTE_SIZE, 0x2008))
            for field, offset in detail:
                at = offset if kind == "struct" else 0
                last.add(TAG_MEMBER, write.name(field), refers, write.number(AT_MEMBER_LOCATION, at))


def encoded(path: Path, data: bytes) -> bytes | str:
    path.write_bytes(data)
    try:
        return btfstep.encode(path)
    except BtfstepError as error:
        return error.message


@pytest.mark.parametrize("big_endian", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("inline", [False, True], ids=["strp", "string"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(types=TYPES)
def test_both_ways_come_to_the_same(
    tmp_path: Path, types: list[tuple[str, str, Any]], inline: bool, big_endian: bool
) -> None:
    plain = encoded(tmp_path / "plain", build(types, Writer(True, inline), big_endian))
    assert plain == encoded(tmp_path / "steps", build(types, Writer(False, inline), big_endian))
    assert isinstance(plain, bytes)


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "steps"])
def test_more_members_than_one_run_holds(tmp_path: Path, plain: bool) -> None:
    fields = [(f"member{i}", i * 4) for i in range(1000)]
    data = encoded(tmp_path / "file", build([("struct", "s", fields)], Writer(plain, False), False))
    assert isinstance(data, bytes)
    (struct,) = [found for found in read_btf(data) if found.kind == "STRUCT"]
    assert [(row[0], row[2]) for row in struct.rows] == [(name, at * 8) for name, at in fields]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "steps"])
def test_a_union_member_past_the_start_is_refused(tmp_path: Path, plain: bool) -> None:
    write = Writer(plain, False)
    maker = DwarfMaker()
    union = maker.unit().add(TAG_UNION, write.name("u"), write.number(AT_BYTE_SIZE, 8))
    union.add(TAG_MEMBER, write.name("m"), write.number(AT_MEMBER_LOCATION, 4))
    assert encoded(tmp_path / "file", maker.build()) == "union member that does not lie at its start"


def test_names_that_no_section_holds_are_refused(tmp_path: Path) -> None:
    """The last string of .debug_str has no end here: reading it would leave the section."""
    for tag in (TAG_TYPEDEF, TAG_STRUCT):
        maker = DwarfMaker()
        maker.unit().add(tag, (AT_NAME, FORM_STRP, "endless"))
        sections = maker.sections()
        sections[".debug_str"] = sections[".debug_str"][:-1]
        assert "string" in str(encoded(tmp_path / "file", maker.build(sections)))


def test_a_parameter_of_a_function_without_a_symbol_names_one_of_another(tmp_path: Path) -> None:
    """Parameters of functions that are not listed are left out, unless something comes back to them."""
    maker = DwarfMaker()
    unit = maker.unit()
    number = unit.base_type("int", 4)
    inlined = unit.add(TAG_FUNCTION, (AT_NAME, FORM_STRING, "inlined"))
    count = inlined.add(TAG_PARAMETER, (AT_NAME, FORM_STRING, "count"), (AT_TYPE, FORM_REF4, number))
    address = maker.function("listed")
    listed = unit.add(TAG_FUNCTION, (AT_NAME, FORM_STRING, "listed"), (AT_LOW_PC, FORM_ADDR, address))
    listed.add(TAG_PARAMETER, (AT_ORIGIN, FORM_REF4, count))
    data = encoded(tmp_path / "file", maker.build())
    assert isinstance(data, bytes)
    (proto,) = [found for found in read_btf(data) if found.kind == "FUNC_PROTO"]
    assert proto.rows == (("count", 1),)
