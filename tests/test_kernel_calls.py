# SPDX-License-Identifier: GPL-2.0-only
"""The calls of pahole in kernel trees, as their scripts spell them, from 6.1 to 7.3."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from btfstep.elf.image import ElfImage
from conftest import Build, tool

KERNEL = """
struct device { int id; double scale; struct device *parent; };
int probe(struct device *device) { return device->id; }
"""
MODULE = """
struct device { int id; double scale; struct device *parent; };
struct widget { struct device *device; long size; };
int use(struct widget *widget) { return widget->device->id; }
"""
# scripts/pahole-flags.sh of 6.1; scripts/Makefile.btf of 6.12, and of 7.3 without and with KBUILD_BUILD_TIMESTAMP,
# under make -j2 and plain make (whose -j has no number).
LIST = "encode_force,var,float,enum64,decl_tag,type_tag,optimized_func,consistent_func"
FLAGS = {
    "6.1": "--btf_gen_floats -j --lang_exclude=rust --skip_encoding_btf_inconsistent_proto --btf_gen_optimized",
    "6.12": f"-j --btf_features={LIST},decl_tag_kfuncs -j --lang_exclude=rust",
    "7.3": f"-j2 --btf_features={LIST} --btf_features=layout -j2 --lang_exclude=rust",
    "7.3-timestamp": f"-j --btf_features={LIST} --btf_features=layout -j --btf_features=+reproducible_build"
    " --lang_exclude=rust",
}


@pytest.fixture(scope="module", params=["btfstep", "reference"])
def pahole(request: pytest.FixtureRequest) -> list[str]:
    """What PAHOLE may be; each has to understand the calls."""
    if request.param == "btfstep":
        return [sys.executable, "-m", "btfstep"]
    return [request.getfixturevalue("reference")]


@pytest.fixture
def tree(build: Build, tmp_path: Path) -> Path:
    """A directory with a linked ``vmlinux`` and a relocatable ``m.ko``, both without BTF."""
    build(KERNEL, name="vmlinux").rename(tmp_path / "vmlinux")
    (tmp_path / "m.c").write_text(MODULE)
    subprocess.run([tool("gcc"), "-g", "-O2", "-c", "-o", "m.ko", "m.c"], cwd=tmp_path, check=True)
    return tmp_path


def call(pahole: list[str], *arguments: str | Path, cwd: Path) -> None:
    done = subprocess.run([*pahole, *arguments], cwd=cwd, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def section(path: Path) -> bytes:
    with ElfImage.open(str(path)) as image:
        found = image.section(".BTF")
        assert found is not None
        return bytes(image.contents(found))


def test_configuration_reads_the_version(pahole: list[str]) -> None:
    done = subprocess.run([*pahole, "--version"], capture_output=True, text=True, check=True)
    assert re.sub(r"v(\d+)\.(\d+)", r"\1\2", done.stdout) == "132\n"


def in_place(pahole: list[str], tree: Path, flags: list[str]) -> tuple[bytes, bytes]:
    """As scripts/link-vmlinux.sh and scripts/Makefile.modfinal call it up to 6.18."""
    call(pahole, "-J", *flags, "vmlinux", cwd=tree)
    call(pahole, "-J", *flags, "--btf_base", "vmlinux", "m.ko", cwd=tree)
    return section(tree / "vmlinux"), section(tree / "m.ko")


def detached(pahole: list[str], tree: Path, flags: list[str]) -> tuple[bytes, bytes]:
    """As scripts/gen-btf.sh calls it since; the script then puts the sections where they belong."""
    outputs = []
    for file, base in [("vmlinux", []), ("m.ko", ["--btf_base", "vmlinux"])]:
        before = (tree / file).read_bytes()
        call(pahole, "-J", *flags, *base, f"--btf_encode_detached={file}.BTF.1", file, cwd=tree)
        assert (tree / file).read_bytes() == before
        added = [tool("objcopy"), "--add-section", f".BTF={file}.BTF.1", file]
        subprocess.run(added, cwd=tree, check=True)
        outputs.append((tree / f"{file}.BTF.1").read_bytes())
    return outputs[0], outputs[1]


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_both_forms_of_call_give_the_same(pahole: list[str], tree: Path, tmp_path: Path, flags: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("vmlinux", "m.ko"):
        shutil.copy(tree / name, other)
    vmlinux, module = in_place(pahole, tree, flags.split())
    assert (vmlinux, module) == detached(pahole, other, flags.split())
    assert b"device" in vmlinux
    assert b"widget" in module
    assert b"device" not in module  # it is in the base


@pytest.mark.parametrize("form", [in_place, detached])
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_the_bytes_are_those_of_the_reference(
    reference: str,
    tree: Path,
    tmp_path: Path,
    form: Callable[[list[str], Path, list[str]], tuple[bytes, bytes]],
    flags: str,
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("vmlinux", "m.ko"):
        shutil.copy(tree / name, other)
    theirs = form([reference], other, flags.split())
    known = subprocess.run([reference, "--supported_btf_features"], capture_output=True, text=True, check=True)
    if "layout" not in known.stdout:  # it depends on the reference's libbpf, and is ignored then
        flags = flags.replace("--btf_features=layout", "")
    assert form([sys.executable, "-m", "btfstep"], tree, flags.split()) == theirs


def test_configuration_with_the_patches_asks_for_the_command_that_takes_all_modules(pahole: list[str]) -> None:
    """PAHOLE_HAS_MODULES, in the patch that encodes the BTF of all modules in one call."""
    patches = sorted((Path(__file__).parent.parent / "kbuild" / "patches").glob("*/*-in-one-call.patch"))
    assert patches
    done = subprocess.run([*pahole, "modules", "--help"], capture_output=True, text=True)
    for patch in patches:
        probe = re.search(r"\$\(PAHOLE\) modules --help \| grep -q '(.*)'\)", patch.read_text())
        assert probe is not None
        assert (probe[1] in done.stdout) == (pahole[-1] == "btfstep")
