# SPDX-License-Identifier: GPL-2.0-only
"""The raw and JSON forms, against bpftool and as JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from btfmaker import BOOL, CHAR, BtfMaker
from btfstep.btf import rawdump
from btfstep.btf.reader import BtfReader


def everything() -> BtfMaker:
    """Every kind, and the values at which the two forms part."""
    maker = BtfMaker()
    integer = maker.integer("int")
    for encoding in (0, CHAR, BOOL, 3):
        maker.integer("byte", 1, encoding)
    maker.struct("s", 8, [("a", integer, 0, 3), ("", integer, 32)])
    maker.union("", 4, [("u", integer, 0)])
    maker.struct("empty", 0)
    maker.enum("e", [("NEG", -1), ("POS", 1)], signed=True)
    maker.enum("f", [("BIG", -1)])
    maker.enum64("g", [("NEG", -1)], signed=True)
    maker.enum64("h", [("BIG", -1)])
    maker.fwd("a")
    maker.fwd("b", union=True)
    for linkage in range(4):
        maker.func("function", maker.func_proto(integer, [("x", integer), ("", 0)]), linkage)
        maker.var("variable", integer, linkage)
    maker.datasec(".data", 8, [(maker.next_id - 1, 0, 4), (6, 4, 4)])
    maker.floating("double", 8)
    maker.type_tag("user", maker.const(maker.ptr(maker.volatile(maker.restrict(integer)))))
    maker.decl_tag("tag", 6, 1)
    maker.decl_tag('quoted "\\\t\n\r\f\b', 6)
    maker.typedef("t", maker.array(integer, 3, integer))
    return maker


def test_raw_text() -> None:
    maker = BtfMaker()
    integer = maker.integer("int")
    maker.struct("s", 8, [("a", integer, 0, 3), ("", integer, 32)])
    maker.enum64("e", [("E", -1)], signed=True)
    assert rawdump.raw(BtfReader(maker.data())).decode() == (
        "[1] INT 'int' size=4 bits_offset=0 nr_bits=32 encoding=SIGNED\n"
        "[2] STRUCT 's' size=8 vlen=2\n"
        "\t'a' type_id=1 bits_offset=0 bitfield_size=3\n"
        "\t'(anon)' type_id=1 bits_offset=32\n"
        "[3] ENUM64 'e' encoding=SIGNED size=8 vlen=1\n\t'E' val=-1LL\n"
    )


def test_json_is_json() -> None:
    reader = BtfReader(everything().data())
    plain = json.loads(rawdump.json(reader))
    assert plain == json.loads(rawdump.json(reader, pretty=True))
    assert [entry["id"] for entry in plain["types"]] == list(range(1, len(reader)))
    assert plain["types"][5]["members"][0] == {"name": "a", "type_id": 1, "bits_offset": 0, "bitfield_size": 3}
    assert rawdump.json(BtfReader(BtfMaker().data())) == b'{"types":[]}\n'


def test_roots_are_printed_in_their_order() -> None:
    reader = BtfReader(everything().data())
    assert rawdump.raw(reader, [3, 0, 1]).decode().split("]")[0] == "[3"
    assert rawdump.raw(reader, [0]) == b"[0] UNKNOWN '(anon)'\n"
    with pytest.raises(IndexError):
        rawdump.raw(reader, [len(reader)])


def test_bpftool_agrees(bpftool: str, tmp_path: Path) -> None:
    maker = everything()
    reader = BtfReader(maker.data())
    path = tmp_path / "case.btf"
    path.write_bytes(maker.data())
    for options, mine in (
        ([], rawdump.raw(reader)),
        (["-j"], rawdump.json(reader)),
        (["-p"], rawdump.json(reader, pretty=True)),
    ):
        done = subprocess.run([bpftool, *options, "btf", "dump", "file", path], capture_output=True, check=True)
        assert mine == done.stdout
