# SPDX-License-Identifier: GPL-2.0-only
"""What was encoded once is not encoded again, and never wrongly taken for known."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btfstep.build.record import recall, record_path, remember
from btfstep.cli import main
from btfstep.elf.edit import set_section
from btfstep.elf.image import ElfImage
from btfstep.encode import known
from btfstep.encode import module as module_step
from conftest import Build, tool

KERNEL = """
struct device { int id; struct device *parent; };
int probe(struct device *device) { return device->id; }
"""
# One kfunc in a set, as BTF_KFUNCS_START and its like make one.
MODULE = """
struct device { int id; struct device *parent; };
struct widget { struct device *device; long size; };
int use(struct widget *widget) { return widget->device->id; }
asm(".pushsection .BTF_ids,\\"a\\"\\n"
    ".type __BTF_ID__set8__set, @object\\n .size __BTF_ID__set8__set, 16\\n"
    "__BTF_ID__set8__set: .long 0, 1\\n"
    "__BTF_ID__func__use__1: .long 0, 2\\n .popsection");
"""
IDS = bytes([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0])


@pytest.fixture
def kernel(build: Build) -> Path:
    """A linked file with its BTF in it."""
    path = build(KERNEL, name="kernel")
    assert main(["-J", "--btf_features=default", str(path)]) == 0
    return path


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A relocatable file, as a kernel module is, in the current directory's ``build/``."""
    monkeypatch.chdir(tmp_path)
    Path("build").mkdir()
    Path("m.c").write_text(MODULE)
    path = Path("build/m.ko")
    subprocess.run([tool("gcc"), "-g", "-O2", "-c", "-o", path, "m.c"], check=True)
    return path


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were encoded since, rather than known."""
    paths: list[str] = []
    encode = module_step.encode_sections

    def counting(path: str, **arguments: object) -> object:
        paths.append(path)
        return encode(path, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module_step, "encode_sections", counting)
    return paths


def step(kernel: Path, module: Path, *options: str) -> None:
    assert main(["modules", "--base", str(kernel), "--btf_features=default", *options, str(module)]) == 0


def test_nothing_changed_is_nothing_done(kernel: Path, module: Path, encoded: list[str]) -> None:
    step(kernel, module)
    first = module.read_bytes()
    step(kernel, module)
    assert len(encoded) == 1
    assert module.read_bytes() == first


def test_without_a_record_it_is_made_again_and_none_is_kept(kernel: Path, module: Path, encoded: list[str]) -> None:
    step(kernel, module, "--no-record")
    assert os.listdir("build") == ["m.ko"]
    step(kernel, module)
    Path(record_path(str(module))).write_bytes(b"as it was")
    assert main(["-J", "--no-record", f"--btf_base={kernel}", "--btf_encode_detached=o", str(module)]) == 0
    assert len(encoded) == 3
    assert Path(record_path(str(module))).read_bytes() == b"as it was"


def test_a_module_linked_anew_gets_the_bytes_on_record(kernel: Path, module: Path, encoded: list[str]) -> None:
    linked = module.read_bytes()
    step(kernel, module, "--btf_features=distilled_base")
    first = module.read_bytes()
    module.write_bytes(linked)
    step(kernel, module, "--btf_features=distilled_base")
    assert len(encoded) == 1
    assert module.read_bytes() == first


def test_a_detached_output_is_known_too(kernel: Path, module: Path, encoded: list[str]) -> None:
    command = ["-J", f"--btf_base={kernel}", "--btf_encode_detached=out.btf", str(module)]
    assert main(command) == 0
    first = Path("out.btf").read_bytes()
    Path("out.btf").unlink()
    assert main(command) == 0
    assert Path("out.btf").read_bytes() == first
    assert len(encoded) == 1


def test_a_renamed_build_directory_keeps_what_is_known(kernel: Path, module: Path, encoded: list[str]) -> None:
    step(kernel, module)
    Path("build").rename("other")
    step(kernel, Path("other/m.ko"))
    assert len(encoded) == 1


def test_a_base_linked_anew_with_the_same_btf_is_the_same_base(kernel: Path, module: Path, encoded: list[str]) -> None:
    step(kernel, module)
    kernel.write_bytes(kernel.read_bytes() + bytes(64))
    step(kernel, module)
    assert len(encoded) == 1


def test_another_base_is_another_question(kernel: Path, module: Path, encoded: list[str], build: Build) -> None:
    step(kernel, module)
    other = build(KERNEL.replace("int id;", "long id;"), name="other")
    assert main(["-J", "--btf_features=default", str(other)]) == 0
    encoded.clear()
    step(other, module)
    assert encoded == [str(module)]


@pytest.mark.parametrize("option", ["--btf_features=distilled_base", "--lang_exclude=rust", "--kabi_prefix=x", "-Xy"])
def test_other_settings_are_another_question(kernel: Path, module: Path, encoded: list[str], option: str) -> None:
    step(kernel, module)
    step(kernel, module, option)
    assert len(encoded) == 2


def test_another_program_is_another_question(
    kernel: Path, module: Path, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step(kernel, module)
    monkeypatch.setattr(known, "_program", ("another",))
    step(kernel, module)
    assert len(encoded) == 2


def test_another_source_is_another_question(kernel: Path, module: Path, encoded: list[str]) -> None:
    step(kernel, module)
    Path("m.c").write_text(MODULE.replace("long size;", "int size;"))
    subprocess.run([tool("gcc"), "-g", "-O2", "-c", "-o", module, "m.c"], check=True)
    step(kernel, module)
    assert len(encoded) == 2


def test_other_symbols_are_another_question(kernel: Path, module: Path, encoded: list[str]) -> None:
    step(kernel, module)
    subprocess.run([tool("objcopy"), "--redefine-sym", "use=used", module], check=True)
    step(kernel, module)
    assert len(encoded) == 2


def test_ids_that_were_patched_are_no_change_but_flags_are(kernel: Path, module: Path, encoded: list[str]) -> None:
    step(kernel, module)
    set_section(module, ".BTF_ids", bytes([1, 0, 0, 0, *IDS[4:8], 77, 0, 0, 0, *IDS[12:]]))
    step(kernel, module)
    assert len(encoded) == 1
    set_section(module, ".BTF_ids", IDS[:12] + bytes([3, 0, 0, 0]))
    step(kernel, module)
    assert len(encoded) == 2


def test_what_encoding_does_not_read_does_not_matter(kernel: Path, module: Path, encoded: list[str]) -> None:
    step(kernel, module)
    with ElfImage.open(module) as image:
        section = image.section(".comment")
        assert section is not None
    set_section(module, ".comment", b"x" * section.size)
    with ElfImage.open(module) as image:
        moved = image.section(".comment")
        assert moved is not None
        assert moved.offset != section.offset
    step(kernel, module)
    assert len(encoded) == 1


def test_make_clean_removes_the_record(kernel: Path, module: Path) -> None:
    step(kernel, module)
    assert Path("build/.m.ko.btf").exists()
    # The pattern that the kernel's Makefile has for what is made of modules.
    subprocess.run([tool("find"), ".", "-name", "*.ko.*", "-type", "f", "-delete"], check=True)
    assert os.listdir("build") == ["m.ko"]


def test_a_directory_that_takes_no_record_is_no_error(kernel: Path, module: Path, encoded: list[str]) -> None:
    Path(record_path(str(module))).mkdir()
    step(kernel, module)
    step(kernel, module)
    assert len(encoded) == 2


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "more"])
def test_a_damaged_record_is_ignored_and_replaced(kernel: Path, module: Path, encoded: list[str], damage: str) -> None:
    linked = module.read_bytes()
    step(kernel, module)
    first = module.read_bytes()
    record = Path(record_path(str(module)))
    good = record.read_bytes()
    flipped = good[:-1] + bytes([good[-1] ^ 1])
    record.write_bytes({"cut": good[:-1], "flip": flipped, "empty": b"", "more": good + b"\0"}[damage])
    module.write_bytes(linked)
    step(kernel, module)
    assert len(encoded) == 2
    assert module.read_bytes() == first
    assert record.read_bytes() == good


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("record") / "a.ko")


@given(sections=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.binary(), min_size=1))
def test_what_is_remembered_is_recalled(place: str, sections: dict[str, bytes]) -> None:
    assert remember(place, bytes(16), sections)
    assert recall(place, bytes(16)) == sections
    assert recall(place, bytes(31) + b"\1") is None


@given(data=st.data())
def test_a_record_with_any_byte_changed_is_none(place: str, data: st.DataObject) -> None:
    assert remember(place, bytes(16), {".BTF": b"contents"})
    record = Path(record_path(place))
    changed = bytearray(record.read_bytes())
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    record.write_bytes(changed)
    assert recall(place, bytes(16)) is None
