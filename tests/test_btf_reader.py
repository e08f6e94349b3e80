# SPDX-License-Identifier: GPL-2.0-only
"""Reading BTF: what is accepted, what is refused, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btfmaker import BtfMaker
from btfstep.btf import rawdump
from btfstep.btf.cdump import CDumper
from btfstep.btf.reader import KINDS, BtfReader
from btfstep.errors import FormatError


def sample(order: str = "<") -> BtfMaker:
    """One type of each kind."""
    maker = BtfMaker(order=order)
    integer = maker.integer("int")
    pair = maker.struct("pair", 8, [("a", integer, 0), ("b", integer, 32)])
    pointer = maker.ptr(pair)
    maker.array(maker.const(pointer), 3, integer)
    maker.union("either", 8, [("p", pointer, 0), ("bits", integer, 0, 3)])
    maker.enum("colour", [("RED", -1), ("GREEN", 2)], signed=True)
    maker.enum64("wide", [("BIG", 1 << 40)])
    maker.fwd("later")
    maker.typedef("number", maker.volatile(maker.restrict(integer)))
    maker.type_tag("user", pair)
    maker.floating("double", 8)
    function = maker.func("main", maker.func_proto(integer, [("argc", integer), ("", 0)]), 1)
    maker.decl_tag("bpf_kfunc", function)
    maker.datasec(".data", 4, [(maker.var("here", integer), 0, 4)])
    return maker


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders_read_the_same(order: str) -> None:
    reader = BtfReader(sample(order).data())
    assert reader.big_endian == (order == ">")
    assert rawdump.raw(reader) == rawdump.raw(BtfReader(sample().data()))
    assert CDumper(reader).header() == CDumper(BtfReader(sample().data())).header()


def test_records_and_names() -> None:
    maker = sample()
    reader = BtfReader(maker.data())
    assert len(reader) == maker.next_id == reader.total
    assert reader.find(b"pair") == [2]
    assert reader.name(2) == b"pair"
    assert KINDS[reader.kind(2)] == "STRUCT"
    assert reader.record(2)[3:] == (False, 8, (maker.string("a"), 1, 0, maker.string("b"), 1, 32))
    assert reader.record(0)[1:] == (0, 0, False, 0, ())
    for wrong in (-1, len(reader)):
        with pytest.raises(IndexError):
            reader.record(wrong)


def test_split_btf_continues_its_base() -> None:
    base = sample()
    split = BtfMaker(base)
    split.typedef("pair_t", 2)
    read_base = BtfReader(base.data())
    reader = BtfReader(split.data(), read_base)
    assert reader.start_id == base.next_id
    assert rawdump.raw(reader) == f"[{base.next_id}] TYPEDEF 'pair_t' type_id=2\n".encode()
    assert reader.name(2) == b"pair"
    with pytest.raises(FormatError, match="give its base"):
        BtfReader(split.data())


def test_split_btf_may_have_no_strings_of_its_own() -> None:
    base = sample()
    split = BtfMaker(base)
    split.ptr(2)
    assert len(BtfReader(split.data(), BtfReader(base.data()))) == base.next_id + 1


@pytest.mark.parametrize(
    ("names", "sizes", "expected"),
    [(["int"], [4], None), (["long"], [8], 8), (["unsigned long"], [4], 4), (["long int", "long"], [4, 8], 4)],
)
def test_pointers_are_as_large_as_long(names: list[str], sizes: list[int], expected: int | None) -> None:
    maker = BtfMaker()
    for name, size in zip(names, sizes, strict=True):
        maker.integer(name, size)
    assert BtfReader(maker.data()).address_size == (expected or BtfReader(BtfMaker().data()).address_size)
    assert BtfReader(maker.data(), address_size=4).address_size == 4


def test_unknown_kinds_are_skipped_if_their_layout_is_known() -> None:
    maker = BtfMaker()
    maker.integer("int")
    maker.add(21, "future", 7, 1, 2, 3, 4, 5, vlen=2)  # one word, and two for each element
    last = maker.struct("s", 4, [("a", 1, 0)])
    with pytest.raises(FormatError, match=r"type \[2\]: unknown kind 21, and no layout"):
        BtfReader(maker.data())
    maker.layout = bytes(21 * 4) + bytes((4, 8, 0, 0))
    reader = BtfReader(maker.data(header=32))
    assert reader.name(last) == b"s"
    assert b"[2] UNKNOWN 'future'\n" in rawdump.raw(reader)
    assert b"struct s {\n\tint a;\n};\n" in CDumper(reader).header()
    maker.layout = bytes(21 * 4) + bytes((4, 7, 0, 0))
    with pytest.raises(FormatError, match=r"type \[2\].*multiple of 4"):
        BtfReader(maker.data(header=32))


def test_headers_may_grow() -> None:
    assert rawdump.raw(BtfReader(sample().data(header=64))) == rawdump.raw(BtfReader(sample().data()))


def broken(change: Callable[[BtfMaker], object]) -> bytes:
    maker = sample()
    change(maker)
    return maker.data()


TAIL = len(sample().types) + 1

REFUSED: list[tuple[bytes, str]] = [
    (b"", "less than its header"),
    (sample().data()[:23], "less than its header"),
    (b"\x7f" + sample().data()[1:], "magic"),
    (sample().data()[:2] + b"\2" + sample().data()[3:], "version 2"),
    (sample().data(header=24)[:4] + b"\x17\0\0\0" + sample().data()[8:], "header of 23 bytes"),
    (sample().data()[:4] + b"\xff\xff\xff\xff" + sample().data()[8:], "header of 4294967295 bytes"),
    (sample().data(type_len=1 << 31), "types at 0x0, 2147483648 bytes"),
    (sample().data(type_len=6), "not a multiple of 4"),
    (sample().data(str_len=1 << 20), "past the end of the BTF"),
    (sample().data(str_len=0), "null byte"),
    (sample().data()[:-1] + b"x", "do not end with a null byte"),
    (broken(lambda maker: maker.ptr(99)), rf"type \[{TAIL}\]: refers to type 99"),
    (broken(lambda maker: maker.array(1, 2, 99)), rf"type \[{TAIL}\]: refers to type 99"),
    (broken(lambda maker: maker.struct("s", 4, [("a", 99, 0)])), rf"type \[{TAIL}\]: refers to type 99"),
    (broken(lambda maker: maker.func_proto(99)), rf"type \[{TAIL}\]: refers to type 99"),
    (broken(lambda maker: maker.func_proto(0, [("a", 99)])), rf"type \[{TAIL}\]: refers to type 99"),
    (broken(lambda maker: maker.datasec("s", 4, [(99, 0, 0)])), rf"type \[{TAIL}\]: refers to type 99"),
    (broken(lambda maker: maker.func("f", 1)), rf"type \[{TAIL}\]: FUNC whose type 1 is no FUNC_PROTO"),
    (broken(lambda maker: maker.add("typedef", 9999, 1)), rf"type \[{TAIL}\]: string offset 0x270f"),
    (broken(lambda maker: maker.add("enum", "e", 4, 9999, 0, vlen=1)), rf"type \[{TAIL}\]: string offset 0x270f"),
    (broken(lambda maker: maker.add("struct", "s", 4, vlen=1)), rf"type \[{TAIL}\]: STRUCT of 24 bytes, with 12 left"),
    (broken(lambda maker: maker.add("struct", "s", 4, vlen=0xFFFFFF)), rf"type \[{TAIL}\]: STRUCT of"),
    (broken(lambda maker: maker.types.append(b"\0" * 8)), rf"type \[{TAIL}\]: 8 bytes left"),
    (broken(lambda maker: maker.add(0, "", 0)), rf"type \[{TAIL}\]: unknown kind 0"),
    (broken(lambda maker: maker.add(127, "", 0)), rf"type \[{TAIL}\]: unknown kind 127"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_malformed_btf_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        BtfReader(data, path="file.o", section=".BTF")
    assert str(caught.value).startswith("file.o: .BTF: ")


def refuses(ask: Callable[[], object]) -> str:
    """What is wrong with the BTF, or nothing."""
    try:
        ask()
    except FormatError as error:
        return str(error)
    return ""


def exercise(reader: BtfReader) -> None:
    """Everything that can be asked of BTF; each answer is a text, or an error that names a type."""
    dumper = CDumper(reader)
    asks: list[Callable[[], object]] = [
        lambda: rawdump.raw(reader),
        lambda: rawdump.json(reader),
        lambda: CDumper(reader).header(),
        lambda: CDumper(reader).header(sort=False),
        lambda: CDumper(reader).excerpt(range(len(reader))),
        *(partial(dumper.text, type_id) for type_id in range(len(reader))),
    ]
    for ask in asks:
        problem = refuses(ask)
        assert not problem or "type [" in problem


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=6), st.integers(0, 600))
def test_no_change_to_a_file_does_harm(changes: list[tuple[int, int]], length: int) -> None:
    data = bytearray(sample().data())
    for at, value in changes:
        data[at % len(data)] = value
    for whole in (bytes(data), bytes(data[:length])):
        try:
            reader = BtfReader(whole)
        except FormatError:
            continue
        exercise(reader)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.integers(0, 0x130), max_size=60), st.booleans())
def test_no_words_do_harm(words: list[int], swap: bool) -> None:
    """Random small numbers as type records: many are well formed, and refer to each other in every way."""
    maker = BtfMaker(order=">" if swap else "<")
    maker.string("name")
    maker.layout = bytes((0, 0, 0, 0)) * 21
    at = 0
    while at + 3 <= len(words):
        kind = words[at + 1] % 20
        fixed = {1: 1, 3: 3, 14: 1, 17: 1}.get(kind, 0)
        element = {4: 3, 5: 3, 6: 2, 13: 2, 15: 3, 19: 3}.get(kind, 0)
        vlen = min(words[at + 1] >> 5, (len(words) - at - 3) // element) if element else 0
        size = fixed + vlen * element
        rest = words[at + 3 : at + 3 + size]
        if len(rest) < size:
            break
        maker.add(kind, words[at] % 6, words[at + 2] % 16, *(word % 16 for word in rest), vlen=vlen)
        at += 3 + size
    problem = refuses(lambda: BtfReader(maker.data(header=32)))
    if problem:
        assert "type [" in problem
    else:
        exercise(BtfReader(maker.data(header=32)))
