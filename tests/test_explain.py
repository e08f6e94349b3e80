# SPDX-License-Identifier: GPL-2.0-only
"""``--explain``: why an output was written, or why not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import btfstep
from btfmaker import BtfMaker
from btfstep.btf.reader import BtfReader
from btfstep.cli.explain import btf_difference, difference, header_difference, stamp_difference, text_difference
from btfstep.elf.edit import set_section
from conftest import Build, tool

KERNEL = """
struct device { int id; struct device *parent; };
int probe(struct device *device) { return device->id; }
"""
MODULE = """
struct device { int id; struct device *parent; };
struct widget { struct device *device; long size; };
int use(struct widget *widget) { return widget->device->id; }
"""

Compile = Callable[..., Path]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are relative: they are what is explained."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def module() -> Compile:
    """``module(source)``: compile it to m.ko, as a kernel module is."""

    def compile_module(source: str = MODULE) -> Path:
        Path("m.c").write_text(source)
        subprocess.run([tool("gcc"), "-g", "-O2", "-c", "-o", "m.ko", "m.c"], check=True)
        return Path("m.ko")

    return compile_module


def explain(*arguments: object, status: int = 0) -> list[str]:
    """What is said of one call; nothing is said without being asked."""
    command = [sys.executable, "-m", "btfstep", *map(str, arguments)]
    done = subprocess.run([*command, "--explain"], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return [line.removeprefix("btfstep: ") for line in done.stderr.splitlines()]


def test_in_place(build: Build) -> None:
    old, new = build(KERNEL, name="old"), build(KERNEL.replace("int id;", "int id, more;"), name="new")
    assert explain("-J", "old.elf") == ["old.elf: written: it had no BTF"]
    assert explain("-J", "old.elf") == [
        "old.elf: not written: it holds this BTF already, and its modification time moved (--no-touch leaves it)"
    ]
    assert explain("-J", "--no-touch", "old.elf") == ["old.elf: not written: it holds this BTF already"]
    set_section(new, ".BTF", btfstep.encode(old))
    assert explain("-J", "new.elf") == ["new.elf: written: struct device changed"]
    set_section(new, ".BTF", b"nonsense")
    assert explain("-J", "new.elf") == ["new.elf: written: what it held cannot be read as BTF"]


def test_detached(build: Build) -> None:
    build(KERNEL, name="old")
    build(KERNEL + "int more(long l) { return 0; }", name="new")
    assert explain("--btf_encode_detached=out.btf", "old.elf") == ["out.btf: written: there was none"]
    assert explain("--btf_encode_detached=out.btf", "old.elf") == ["out.btf: not written: it holds the same already"]
    assert explain("--btf_encode_detached=out.btf", "new.elf") == ["out.btf: written: int long int is new, and 1 more"]
    assert explain("--btf_encode_detached=/dev/null", "new.elf") == ["/dev/null: written: it is no regular file"]


def step(*arguments: object) -> list[str]:
    return explain("modules", "--base", "kernel.elf", *arguments)


UNCHANGED = "m.ko: not written: it holds this BTF already, and its modification time moved (--no-touch leaves it)"


@pytest.fixture
def kernel(build: Build) -> Path:
    path = build(KERNEL, name="kernel")
    assert explain("-J", path) != []
    return path


def test_a_module_without_changes(kernel: Path, module: Compile) -> None:
    linked = module().read_bytes()
    first = ["m.ko: encoded: there is no record of it", "m.ko: written: it had no BTF"]
    assert step("m.ko") == first
    known = "m.ko: not encoded: all that its BTF is made from is as it was"
    assert step("m.ko") == [known, UNCHANGED]
    Path("m.ko").write_bytes(linked)
    assert step("m.ko") == [known, "m.ko: written: it had no BTF"]
    Path(".m.ko.btf").unlink()
    assert step("m.ko") == ["m.ko: encoded: there is no record of it", UNCHANGED]
    assert step("--no-record", "m.ko") == ["m.ko: encoded: records are not used", UNCHANGED]
    # One file with a base is told about in the same words.
    assert explain("-J", "--btf_base=kernel.elf", "--no-touch", "m.ko") == [
        known,
        "m.ko: not written: it holds this BTF already",
    ]


def test_a_module_whose_source_changed(kernel: Path, module: Compile) -> None:
    module()
    step("m.ko")
    module(MODULE.replace("long size;", "int size;"))
    assert step("m.ko") == [
        "m.ko: encoded: debug sections changed; struct widget changed, and 1 more",
        "m.ko: written: it had no BTF",
    ]
    module(MODULE.replace("long size;", "int size;").replace("return", "\n\nreturn"))
    lines = step("m.ko")
    assert lines[0] == "m.ko: encoded: debug sections changed; the result is the same"


def test_a_module_whose_symbols_changed(kernel: Path, module: Compile) -> None:
    path = module()
    step("m.ko")
    subprocess.run([tool("objcopy"), "--redefine-sym", "use=used", path], check=True)
    assert step("m.ko") == [
        "m.ko: encoded: symbols changed; func use is gone",
        "m.ko: written: it held other BTF",
    ]


def test_other_features_and_settings(kernel: Path, module: Compile) -> None:
    module()
    step("--btf_features=default", "m.ko")
    assert step("--btf_features=default,global_var,-float", "m.ko")[0] == (
        "m.ko: encoded: features changed (+global_var); the result is the same"
    )
    assert step("--btf_features=var", "--lang_exclude=rust", "m.ko")[0].startswith(
        "m.ko: encoded: features changed (-encode_force -float -decl_tag -type_tag -enum64 "
    )
    lines = step("--btf_features=var", "m.ko")
    assert lines[0] == (
        "m.ko: encoded: the settings changed (languages, prefixes, or the distilled base); the result is the same"
    )


def test_another_base(kernel: Path, module: Compile, build: Build) -> None:
    module()
    step("m.ko")
    build("struct first { int x; } first;" + KERNEL, name="kernel")
    explain("-J", "kernel.elf")
    assert step("m.ko") == [
        "m.ko: encoded: the BTF of kernel.elf changed; the result is another",
        "m.ko: written: it held other BTF",
    ]


def test_a_distilled_base(kernel: Path, module: Compile) -> None:
    module()
    step("--btf_features=default,distilled_base", "m.ko")
    module(MODULE.replace("long size;", "long size, more;"))
    assert step("--btf_features=default,distilled_base", "m.ko")[0].endswith("; struct widget changed")


def test_a_record_of_an_earlier_version_or_a_made_up_one_is_none(kernel: Path, module: Compile) -> None:
    module()
    step("m.ko")
    record = Path(".m.ko.btf")
    version = record.read_bytes().index(b"btfstep record") + len(b"btfstep record")
    with record.open("r+b") as file:
        file.seek(version)
        file.write(b"\x01")
    assert step("m.ko")[0] == "m.ko: encoded: there is no record of it"


def test_each_module_is_told_about_beside_its_own_line(kernel: Path, module: Compile) -> None:
    Path("n.ko").write_bytes(module().read_bytes())
    lines = step("-j2", "m.ko", "n.ko", "--btf_encode_detached=%.btf")
    assert lines == [
        line
        for name in ("m.ko", "n.ko")
        for line in (f"{name}: encoded: there is no record of it", f"{name}.btf: written: there was none")
    ]


def test_headers_dumps_and_stamps_name_the_first_definition(build: Build) -> None:
    build(KERNEL, name="old")
    build(KERNEL.replace("int id;", "int id, more;"), name="new")
    for command, changed in (
        (["vmlinux-h"], "struct device changed"),
        (["dump", "--format=c"], "struct device changed"),
        (["dump", "--format=btf"], "struct device changed"),
        (["dump"], "it differs from line 1 on"),
    ):
        assert explain(*command, "old.elf", "-o", "out") == ["out: written: there was none"]
        assert explain(*command, "old.elf", "-o", "out") == ["out: not written: it holds the same already"]
        assert explain(*command, "new.elf", "-o", "out") == [f"out: written: {changed}"]
        os.unlink("out")
        assert "name it" in explain(*command, "old.elf", status=1)[0]


def test_ninja_rules() -> None:
    assert explain("ninja", "--rules", "-o", "out") == ["out: written: there was none"]
    Path("out").write_text("old\n")
    assert explain("ninja", "--rules", "-o", "out") == ["out: written: it differs from line 1 on"]


def test_a_stamp(build: Build) -> None:
    build(KERNEL, name="old")
    build(KERNEL.replace("int id;", "int id, more;"), name="new")
    Path("p.bpf.c").write_text("""
        struct device { int id; } __attribute__((preserve_access_index));
        __attribute__((section("raw_tp"))) int prog(struct device *device) { return device->id; }
    """)
    command = [tool("clang"), "-target", "bpf", "-g", "-O2", "-c", "p.bpf.c"]
    if subprocess.run(command, check=False).returncode != 0:
        pytest.skip("this clang does not compile for BPF")
    uses = ["uses", "p.bpf.o", "--missing-ok", "--stamp", "stamp", "--vmlinux"]
    assert explain(*uses, "old.elf") == ["stamp: written: there was none"]
    assert explain(*uses, "old.elf") == ["stamp: not written: it holds the same already"]
    assert explain(*uses, "new.elf") == ["stamp: written: struct device changed"]
    os.unlink("p.bpf.o")
    assert explain(*uses, "new.elf") == ["stamp: not written: an object is not there yet"]


def test_the_first_difference_of_texts() -> None:
    assert text_difference(b"a\nb\nc\n", b"a\nx\nc\n") == "it differs from line 2 on"
    assert text_difference(b"a\n", b"a\nb\n") == "it differs from line 2 on"
    one, two = b"struct a {\n\tint x;\n};\n\n", b"struct b {\n\tint x;\n};\n\n"
    assert header_difference(one + two, one + two.replace(b"x", b"y")) == "struct b changed"
    assert header_difference(one, one + two) == "struct b is new"
    assert header_difference(one + two, two) == "struct a is gone"
    enum, anonymous = b"enum {\n\tRED = 1,\n\tGREEN = 2,\n};\n\n", b"typedef struct {\n\tint x;\n} t;\n\n"
    assert header_difference(enum, enum.replace(b"2", b"3")) == "enum {RED} changed"
    assert header_difference(anonymous, anonymous.replace(b"x", b"y")) == "typedef t changed"
    assert header_difference(b"#define X\n\n", b"#define Y\n\n") == "it differs from line 1 on"
    assert stamp_difference(b"# 1\nstruct a 1\nstruct b 1\n", b"# 1\nfunc c 1\nstruct b 2\n") == (
        "struct b changed, and 2 more"
    )


@given(
    old=st.binary(), new=st.binary(), pieces=st.lists(st.sampled_from([b"enum {", b"\n", b"\n\n", b"}", b"#", b" "]))
)
def test_whatever_was_there_before_can_be_told_about(old: bytes, new: bytes, pieces: list[bytes]) -> None:
    old = b"".join(pieces) + old
    for about in (text_difference, header_difference, stamp_difference):
        assert about(old, new)
    maker = BtfMaker()
    maker.integer("int")
    assert btf_difference(old, maker.data()) == "what it held cannot be read as BTF"


def test_the_same_definitions_with_other_ids() -> None:
    readers = []
    for names in (("a", "b"), ("b", "a")):
        maker = BtfMaker()
        for name in names:
            maker.struct(name, 4)
        readers.append(BtfReader(maker.data()))
    assert difference(*readers) == "the same definitions in another order, or with other ids"


def test_nothing_is_said_or_read_unless_asked(build: Build) -> None:
    build(KERNEL, name="old")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "btfstep", "-J", "old.elf"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(line.startswith("import time:") for line in done.stderr.splitlines())
    assert "btfstep.cli.explain" not in done.stderr
    assert "btfstep.btf.compare" not in done.stderr
