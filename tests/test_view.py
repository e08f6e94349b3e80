# SPDX-License-Identifier: GPL-2.0-only
"""BTF from Python: opening it, and what types say about themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import btfstep
from btfmaker import BtfMaker
from btfstep.btf.view import Enumerator
from conftest import Build, tool

SOURCE = """
struct inner { int x, y; };
typedef const struct inner inner_t;
struct outer { inner_t in; unsigned a:3, b:5; char *names[4]; };
enum colour { RED = -1, GREEN = 2 };
int work(struct outer *o, enum colour c, ...) { return o->a + c; }
int (*keep)(struct outer *, enum colour, ...) = work;
"""


@pytest.fixture
def elf(build: Build) -> Path:
    return build(SOURCE)


def test_dwarf_is_encoded_on_the_way(elf: Path) -> None:
    btf = btfstep.open_btf(elf, jobs=2)
    outer = btf.find("outer", "struct")
    assert outer.size == 48
    assert [(member.name, member.bit_offset, member.bit_size) for member in outer.members] == [
        ("in", 0, 0),
        ("a", 64, 3),
        ("b", 67, 5),
        ("names", 128, 0),
    ]
    names = outer.members[3].type
    assert (names.kind, names.length, names.size) == ("array", 4, 32)
    assert names.c == "char *[4]"
    inner = outer.members[0].type
    assert (inner.kind, inner.name, inner.size) == ("typedef", "inner_t", 8)
    assert inner.type is not None
    assert inner.type.kind == "const"
    assert outer.c == (
        "struct outer {\n\tinner_t in;\n\tunsigned int a: 3;\n\tunsigned int b: 5;\n\tchar *names[4];\n};\n"
    )


def test_functions_and_enumerations(elf: Path) -> None:
    btf = btfstep.open_btf(elf)
    work = btf.find("work")
    assert [parameter.name for parameter in work.parameters] == ["o", "c", ""]
    assert work.parameters[2].type.kind == "void"
    assert work.c == "int work(struct outer *o, enum colour c, ...);\n"
    assert btf.find("colour").enumerators == (Enumerator("RED", -1), Enumerator("GREEN", 2))
    assert work.size is None
    assert work.members == ()


def test_a_sequence_of_types(elf: Path) -> None:
    btf = btfstep.open_btf(elf)
    types = list(btf)
    assert len(types) == len(btf)
    assert types[0].kind == "void"
    assert types[3] == btf[3]
    assert len({btf[3], btf[3], btf[4]}) == 2
    assert list(btf.own) == types[1:]
    for wrong in (-1, len(btf)):
        with pytest.raises(IndexError):
            btf[wrong]
    with pytest.raises(KeyError):
        btf.find("nothing")
    assert btf.find_all("outer", "union") == []


def test_sections_raw_files_and_bases(elf: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw.btf"
    raw.write_bytes(btfstep.encode(elf))
    with_section = tmp_path / "with.elf"
    subprocess.run([tool("objcopy"), f"--add-section=.BTF={raw}", elf, with_section], check=True)
    header = btfstep.open_btf(elf).header()
    assert btfstep.open_btf(raw).header() == header
    assert btfstep.open_btf(with_section).header() == header
    split = BtfMaker()
    split.first, split.text_start = len(btfstep.open_btf(raw)), btfstep.open_btf(raw).reader.text_size
    split.text, split.strings = b"", {"": 0}
    split.typedef("more", 1)
    (tmp_path / "split.btf").write_bytes(split.data())
    btf = btfstep.open_btf(tmp_path / "split.btf", base=with_section)
    assert [entry.name for entry in btf.own] == ["more"]
    with pytest.raises(btfstep.FormatError, match="give its base"):
        btfstep.open_btf(tmp_path / "split.btf")


def distilled_module(tmp_path: Path, elf: Path) -> Path:
    """An ELF file with .BTF split from a distilled base, and that base."""
    base = BtfMaker()
    base.integer("int")
    base.struct("inner", 8)
    split = BtfMaker(base)
    split.struct("mine", 8, [("in", 2, 0)])
    split.ptr(split.next_id - 1)
    (tmp_path / "base").write_bytes(base.data())
    (tmp_path / "split").write_bytes(split.data())
    module = tmp_path / "module.ko"
    sections = [f"--add-section=.BTF={tmp_path / 'split'}", f"--add-section=.BTF.base={tmp_path / 'base'}"]
    subprocess.run([tool("objcopy"), "-g", *sections, elf, module], check=True)
    return module


def test_a_module_brings_its_base_or_fits_another(elf: Path, tmp_path: Path) -> None:
    module = distilled_module(tmp_path, elf)
    alone = btfstep.open_btf(module)
    assert alone.find("inner").members == ()
    fitted = btfstep.open_btf(module, base=elf)
    mine = fitted.find("mine")
    assert mine.members[0].type == fitted.find("inner", "struct")
    assert [member.name for member in mine.members[0].type.members] == ["x", "y"]
    other = BtfMaker()
    other.integer("int")
    other.struct("inner", 12)
    (tmp_path / "other.btf").write_bytes(other.data())
    with pytest.raises(btfstep.FormatError, match=r"type \[2\]: STRUCT inner is not in the base"):
        btfstep.open_btf(module, base=tmp_path / "other.btf")


def test_bpftool_fits_modules_the_same(elf: Path, tmp_path: Path, bpftool: str) -> None:
    module = distilled_module(tmp_path, elf)
    raw = tmp_path / "raw.btf"
    raw.write_bytes(btfstep.encode(elf))
    for base in ([], ["-B", str(raw)]):
        done = subprocess.run([bpftool, *base, "btf", "dump", "file", module], capture_output=True, check=True)
        assert btfstep.open_btf(module, base=base[1] if base else None).raw() == done.stdout


def test_what_is_no_btf(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(btfstep.FormatError, match="neither an ELF file nor raw BTF"):
        btfstep.open_btf(tmp_path / "text")
    with pytest.raises(btfstep.BtfstepError, match="No such file"):
        btfstep.open_btf(tmp_path / "missing")
    with pytest.raises(btfstep.FormatError, match="directory"):
        btfstep.open_btf(tmp_path)


def test_an_endless_type_has_no_size(tmp_path: Path) -> None:
    maker = BtfMaker()
    maker.typedef("t", 1)
    (tmp_path / "t.btf").write_bytes(maker.data())
    with pytest.raises(btfstep.FormatError, match=r"type \[1\]: reference cycle"):
        _ = btfstep.open_btf(tmp_path / "t.btf")[1].size
