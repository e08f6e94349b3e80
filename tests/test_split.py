# SPDX-License-Identifier: GPL-2.0-only
"""Split BTF: a module's types against a base, and the distilled base that it may take along."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import btfstep
from btfstep.btf.base import PreparedBase
from btfstep.btf.distill import distill
from btfstep.btf.reader import BtfReader
from btfstep.cli import main
from btfstep.elf.image import ElfImage
from btfstep.encode.api import encode_file
from btfstep.encode.settings import EncodeSettings
from btfstep.errors import BtfstepError
from btfstep.features import parse_features
from conftest import Build, tool

KERNEL = """
struct list { struct list *next, *prev; };
struct hidden;
struct device { int id; struct list list; struct hidden *hidden; union { long a; char b; }; };
enum state { OFF, ON };
typedef unsigned long size_type;
struct device the_device;
enum state the_state;
int probe(struct device *device, size_type size) { return device->id + (int)size; }
"""
MODULE = """
struct list { struct list *next, *prev; };
struct hidden { int now_known; };
struct device { int id; struct list list; struct hidden *hidden; union { long a; char b; }; };
enum state { OFF, ON };
typedef unsigned long size_type;
struct widget { struct device *device; enum state state; size_type size; struct hidden hidden; int grid[3][4]; };
struct widget the_widget __attribute__((section(".data..percpu")));
int probe(struct device *device, size_type size) { return device->id + (int)size; }
long widget_size(struct widget *widget, const char *unit, ...) { return widget->size; }
"""


@pytest.fixture
def kernel(build: Build) -> Path:
    """A linked file with its BTF in it."""
    path = build(KERNEL, name="kernel")
    assert main(["-J", "--btf_features=default", str(path)]) == 0
    return path


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A relocatable file, as a kernel module is."""
    (tmp_path / "module.c").write_text(MODULE)
    output = tmp_path / "module.ko"
    subprocess.run([tool("gcc"), "-g", "-O2", "-c", "-o", output, "module.c"], cwd=tmp_path, check=True)
    return output


def kinds(btf: BtfReader) -> dict[bytes, set[int]]:
    """The kinds of the split part's types, by name."""
    result: dict[bytes, set[int]] = {}
    for number in range(btf.start_id, btf.total):
        result.setdefault(btf.name(number), set()).add(btf.record(number)[1])
    return result


def read(path: Path, section: str) -> bytes:
    with ElfImage.open(str(path)) as image:
        found = image.section(section)
        assert found is not None
        return bytes(image.contents(found))


def test_types_of_the_base_are_not_repeated(kernel: Path, module: Path) -> None:
    base = BtfReader(read(kernel, ".BTF"))
    split = BtfReader(btfstep.encode(module, base=kernel), base)
    own = kinds(split)
    assert split.start_id == base.total
    assert b"list" not in own
    assert b"state" not in own
    assert b"int" not in own
    assert {b"widget", b"widget_size", b"the_widget", b".data..percpu"} <= own.keys()


def test_a_base_struct_is_another_type_where_it_would_have_to_change(kernel: Path, module: Path) -> None:
    # `struct hidden` is only declared in the base; the base cannot learn what it is.
    own = kinds(BtfReader(btfstep.encode(module, base=kernel), BtfReader(read(kernel, ".BTF"))))
    assert b"hidden" in own
    assert b"device" in own


def test_what_the_base_declares_is_compared_as_each_unit_has_it(
    build: Build, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A struct that was merged with one of the base has declarations of its own, and those may be given a meaning."""
    declared = "struct hidden; struct holder { struct hidden *hidden; };"
    defined = "struct hidden { int known; }; struct holder { struct hidden *hidden; };"
    # Used before they are defined, so that they are compared before what they refer to.
    user = "struct user { struct holder *holder; };"
    base = build(f"{declared} struct holder the_holder;", name="base")
    assert main(["-J", "--btf_features=default", str(base)]) == 0
    modules: list[Path] = []
    for first, second in ((declared, defined), (defined, declared)):
        (tmp_path / "u0.c").write_text(f"{user} {first} struct user u0;")
        (tmp_path / "u1.c").write_text(f"{user} {second} struct user u1;")
        modules.append(tmp_path / f"{len(modules)}.ko")
        command = [tool("gcc"), "-g", "-r", "-nostdlib", "-o", str(modules[-1]), "u0.c", "u1.c"]
        subprocess.run(command, cwd=tmp_path, check=True)
    encoded = [btfstep.encode(module, base=base) for module in modules]
    for data in encoded:
        split = BtfReader(data, BtfReader(read(base, ".BTF")))
        assert [split.name(number) for number in range(split.start_id, split.total)].count(b"user") == 1
    reference = request.getfixturevalue("reference")
    for module, data in zip(modules, encoded, strict=True):
        out = tmp_path / "reference.btf"
        options = ["--btf_features=default", f"--btf_base={base}", f"--btf_encode_detached={out}"]
        subprocess.run([reference, "-J", *options, module], check=True)
        assert data == out.read_bytes()


def test_a_base_that_differs_in_one_type_is_compared_once(build: Build, tmp_path: Path) -> None:
    """Whatever reaches that type differs too, but not each of these has to find out anew."""
    count = 3000
    ring = [f"struct s{i} {{ struct s{(i + 1) % count} *next, *far; struct odd *odd; }};" for i in range(count)]
    ring.append("struct s0 ring;")
    path = build("struct odd { int a; }; " + " ".join(ring), "-fno-eliminate-unused-debug-types", name="base")
    assert main(["-J", "--btf_features=default", str(path)]) == 0
    (tmp_path / "odd.c").write_text("struct odd { long a; }; " + " ".join(ring))
    module = tmp_path / "odd.ko"
    command = [tool("gcc"), "-g", "-fno-eliminate-unused-debug-types", "-c", "-o", str(module), "odd.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    split = BtfReader(btfstep.encode(module, base=path), BtfReader(read(path, ".BTF")))
    assert sum(split.name(number).startswith(b"s") for number in range(split.start_id, split.total)) == count


def test_strings_of_the_base_are_not_repeated(kernel: Path, module: Path) -> None:
    base = BtfReader(read(kernel, ".BTF"))
    split = BtfReader(btfstep.encode(module, base=kernel), base)
    assert not set(split.strings.split(b"\0")[:-1]) & set(base.strings.split(b"\0")[:-1])


def test_a_raw_base_is_as_good_as_an_elf(kernel: Path, module: Path, tmp_path: Path) -> None:
    raw = tmp_path / "base.btf"
    raw.write_bytes(read(kernel, ".BTF"))
    assert btfstep.encode(module, base=raw) == btfstep.encode(module, base=kernel)


def test_a_base_that_was_prepared_for_many_modules_gives_the_same(kernel: Path, module: Path) -> None:
    prepared = PreparedBase(BtfReader(read(kernel, ".BTF")))
    settings = EncodeSettings(features=parse_features("default"))
    alone = btfstep.encode(module, base=kernel)
    for jobs in (1, 2, 1):
        assert encode_file(str(module), jobs=jobs, options=settings, base=prepared) == alone


def test_the_base_as_its_own_base_adds_little(kernel: Path) -> None:
    base = BtfReader(read(kernel, ".BTF"))
    own = kinds(BtfReader(btfstep.encode(kernel, base=kernel), base))
    # libbpf never finds the typedefs of a base.
    assert set(own) <= {b"", b"size_type", b"probe"}


@pytest.mark.parametrize("features", ["default", "default,global_var", "default,true_signature", "all"])
def test_bytes_are_those_of_the_reference(
    kernel: Path, module: Path, tmp_path: Path, reference: str, features: str
) -> None:
    out = tmp_path / "reference.btf"
    subprocess.run(
        [reference, "-J", f"--btf_features={features}", f"--btf_base={kernel}", f"--btf_encode_detached={out}", module],
        check=True,
    )
    assert btfstep.encode(module, features=features, base=kernel) == out.read_bytes()


def test_distilled_base_in_place_is_that_of_the_reference(
    kernel: Path, module: Path, tmp_path: Path, reference: str
) -> None:
    theirs = tmp_path / "theirs.ko"
    theirs.write_bytes(module.read_bytes())
    features = "--btf_features=default,distilled_base"
    environment = {**os.environ, "LLVM_OBJCOPY": tool("objcopy")}
    subprocess.run([reference, "-J", features, f"--btf_base={kernel}", theirs], check=True, env=environment)
    assert main(["-J", features, f"--btf_base={kernel}", str(module)]) == 0
    assert read(module, ".BTF.base") == read(theirs, ".BTF.base")
    assert read(module, ".BTF") == read(theirs, ".BTF")


@pytest.mark.parametrize("command", [["-J", "--btf_base"], ["modules", "--base"]])
def test_a_distilled_base_from_before_goes(kernel: Path, module: Path, tmp_path: Path, command: list[str]) -> None:
    """The kernel's loader takes any ``.BTF.base`` for what ``.BTF`` is split from."""
    plain = tmp_path / "plain.ko"
    plain.write_bytes(module.read_bytes())
    command = [*command, str(kernel)]
    assert main([*command, "--btf_features=default", str(plain)]) == 0
    assert main([*command, "--btf_features=default,distilled_base", str(module)]) == 0
    assert main([*command, "--btf_features=default", str(module)]) == 0
    with ElfImage.open(str(module)) as image:
        assert image.section(".BTF.base") is None
    assert read(module, ".BTF") == read(plain, ".BTF")
    # What readers of ELF make of the entry that stays behind in the section table.
    out = subprocess.run([tool("readelf"), "-SsW", module], capture_output=True, text=True, check=True)
    assert out.stderr == ""
    assert ".BTF.base" not in out.stdout
    subprocess.run([tool("objcopy"), module, tmp_path / "copy.ko"], check=True)
    assert read(tmp_path / "copy.ko", ".BTF") == read(plain, ".BTF")
    assert main([*command, "--btf_features=default,distilled_base", str(module)]) == 0
    assert read(module, ".BTF.base")


def test_a_distilled_base_has_names_and_sizes_alone(kernel: Path, module: Path) -> None:
    base = BtfReader(read(kernel, ".BTF"))
    ours, distilled = distill(BtfReader(btfstep.encode(module, base=kernel), base))
    small = BtfReader(distilled)
    assert small.total < base.total
    for number in range(1, small.total):
        assert small.record(number)[2] == 0, "no member and no enumerator"
        assert small.name(number)
    assert b"widget" in kinds(BtfReader(ours, small))


def test_distilling_needs_a_base(kernel: Path) -> None:
    with pytest.raises(ValueError, match="without a base"):
        distill(BtfReader(read(kernel, ".BTF")))


def test_without_btf_a_base_is_refused(build: Build, module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = build("int x;", name="bare")
    assert main(["-J", "--btf_base", str(bare), "--btf_encode_detached=out", str(module)]) == 1
    assert "has no .BTF section" in capsys.readouterr().err


def test_split_btf_is_no_base(kernel: Path, module: Path, tmp_path: Path) -> None:
    split = tmp_path / "split.ko"
    split.write_bytes(module.read_bytes())
    assert main(["-J", "--btf_features=default,distilled_base", f"--btf_base={kernel}", str(split)]) == 0
    with pytest.raises(BtfstepError, match="split BTF itself"):
        btfstep.encode(module, base=split)


def test_a_base_of_the_other_byte_order_is_refused(module: Path, tmp_path: Path) -> None:
    order = "big" if read_order(module) == "little" else "little"
    raw = tmp_path / "other.btf"
    header = b"\xeb\x9f" if order == "big" else b"\x9f\xeb"
    words = (24, 0, 0, 0, 1)
    raw.write_bytes(header + b"\1\0" + b"".join(word.to_bytes(4, order) for word in words) + b"\0")  # type: ignore[arg-type]
    with pytest.raises(BtfstepError, match="other byte order"):
        btfstep.encode(module, base=raw)


def read_order(path: Path) -> str:
    with ElfImage.open(str(path)) as image:
        return "big" if image.big_endian else "little"
