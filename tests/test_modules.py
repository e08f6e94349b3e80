# SPDX-License-Identifier: GPL-2.0-only
"""``btfstep modules``: many modules in one call."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from btfstep.cli import main
from btfstep.elf.image import ElfImage
from conftest import Build, tool

KERNEL = """
struct device { int id; struct device *parent; };
int probe(struct device *device) { return device->id; }
"""
MODULE = """
struct device { int id; struct device *parent; };
struct widget_%d { struct device *device; long size; };
int use_%d(struct widget_%d *widget) { return widget->device->id; }
"""
COUNT = 5
SIGNATURE = bytes(40) + b"~Module signature appended~\n"


@pytest.fixture
def kernel(build: Build) -> Path:
    """A linked file with its BTF in it."""
    path = build(KERNEL, name="kernel")
    assert main(["-J", "--btf_features=default", str(path)]) == 0
    return path


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A few modules, in the current directory's ``drivers/``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("quiet", raising=False)
    Path("drivers").mkdir()
    paths = []
    for number in range(COUNT):
        source = Path(f"drivers/m{number}.c")
        source.write_text(MODULE % (number, number, number))
        path = source.with_suffix(".ko")
        subprocess.run([tool("gcc"), "-g", "-O2", "-c", "-o", path, source], check=True)
        paths.append(path)
    return paths


def alone(kernel: Path, module: Path, *options: str) -> bytes:
    """What a call of its own makes of a copy of the module."""
    copy = Path("alone.ko")
    shutil.copy(module, copy)
    assert main(["-J", f"--btf_base={kernel}", *options, str(copy)]) == 0
    return copy.read_bytes()


@pytest.mark.parametrize("features", ["default", "default,distilled_base"])
@pytest.mark.parametrize("jobs", ["-j1", "-j3"])
def test_each_file_is_that_of_a_call_of_its_own(kernel: Path, modules: list[Path], jobs: str, features: str) -> None:
    option = f"--btf_features={features}"
    expected = [alone(kernel, module, option) for module in modules]
    assert main(["modules", "--base", str(kernel), jobs, option, *map(str, modules)]) == 0
    assert [module.read_bytes() for module in modules] == expected


def test_a_list_names_modules_as_modules_order_does(kernel: Path, modules: list[Path]) -> None:
    Path("modules.order").write_text("drivers/m0.o\ndrivers/m1.o\n\ndrivers/m2.ko\ndrivers/m1.o\n")
    expected = [alone(kernel, module) for module in modules[:3]] + [module.read_bytes() for module in modules[3:]]
    assert main(["modules", f"--base={kernel}", "@modules.order"]) == 0
    assert [module.read_bytes() for module in modules] == expected


def test_an_empty_list_is_nothing_to_do(kernel: Path, modules: list[Path]) -> None:
    Path("modules.order").write_text("")
    assert main(["modules", f"--base={kernel}", "@modules.order"]) == 0


@pytest.mark.parametrize("jobs", ["-j1", "-j3"])
def test_one_that_fails_is_reported_and_the_others_are_done(
    kernel: Path, modules: list[Path], capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    modules[1].write_bytes(b"not an ELF file")
    modules[3].unlink()
    assert main(["modules", "--base", str(kernel), jobs, *map(str, modules)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [f"  BTF [M] {modules[number]}" for number in (0, 2, 4)]
    lines = err.splitlines()
    assert len(lines) == 2
    assert str(modules[1]) in lines[0]
    assert str(modules[3]) in lines[1]
    for number in (0, 2, 4):
        assert has_btf(modules[number])


def has_btf(path: Path) -> bool:
    with ElfImage.open(str(path)) as image:
        return image.section(".BTF") is not None


def test_without_dwarf_there_is_nothing_to_do(
    kernel: Path, modules: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run([tool("objcopy"), "--strip-debug", modules[0]], check=True)
    assert main(["modules", "--base", str(kernel), *map(str, modules[:2])]) == 0
    assert "has no DWARF" in capsys.readouterr().err
    assert not has_btf(modules[0])
    assert has_btf(modules[1])


def test_a_signed_module_is_refused_and_left_alone(
    kernel: Path, modules: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    signed = modules[0].read_bytes() + SIGNATURE
    modules[0].write_bytes(signed)
    assert main(["modules", "--base", str(kernel), *map(str, modules[:2])]) == 1
    assert main(["-J", f"--btf_base={kernel}", str(modules[0])]) == 1
    assert capsys.readouterr().err.count("is signed") == 2
    assert modules[0].read_bytes() == signed
    assert has_btf(modules[1])


def test_a_signed_module_can_be_encoded_detached(kernel: Path, modules: list[Path]) -> None:
    modules[0].write_bytes(modules[0].read_bytes() + SIGNATURE)
    assert main(["-J", f"--btf_base={kernel}", "--btf_encode_detached=out.btf", str(modules[0])]) == 0


def test_the_second_call_changes_nothing_but_times(
    kernel: Path, modules: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["modules", "--base", str(kernel), *map(str, modules)]
    assert main(command) == 0
    first = [module.read_bytes() for module in modules]
    for module in modules:
        os.utime(module, (1, 1))
    capsys.readouterr()
    assert main([*command, "--no-touch"]) == 0
    assert all(module.stat().st_mtime == 1 for module in modules)
    assert main(command) == 0
    assert all(module.stat().st_mtime > 1 for module in modules)
    assert [module.read_bytes() for module in modules] == first
    assert capsys.readouterr().out.count("(unchanged)") == 2 * COUNT


def test_detached_outputs_are_those_of_calls_of_their_own_and_leave_the_modules_alone(
    kernel: Path, modules: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before = [module.read_bytes() for module in modules]
    expected = []
    for module in modules:
        assert main(["-J", f"--btf_base={kernel}", "--btf_encode_detached=alone.btf", str(module)]) == 0
        expected.append(Path("alone.btf").read_bytes())
    command = ["modules", "--base", str(kernel), "--btf_encode_detached=%.btf", *map(str, modules)]
    assert main(command) == 0
    outputs = [Path(f"{module}.btf") for module in modules]
    assert [output.read_bytes() for output in outputs] == expected
    assert [module.read_bytes() for module in modules] == before
    # Make and Ninja see by the time that nothing depends on a second run.
    for output in outputs:
        os.utime(output, (1, 1))
    capsys.readouterr()
    assert main(command) == 0
    assert all(output.stat().st_mtime == 1 for output in outputs)
    assert capsys.readouterr().out.count("(unchanged)") == COUNT


def test_silent_make_is_silent(
    kernel: Path, modules: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("quiet", "silent_")
    assert main(["modules", "--base", str(kernel), *map(str, modules)]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_line_of_progress(kernel: Path, modules: list[Path]) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "btfstep", "modules", "--base", str(kernel), *map(str, modules)]
    subprocess.run(command, stdout=theirs, check=True)
    os.close(theirs)
    shown = ""
    while True:
        try:
            shown += os.read(ours, 1 << 16).decode()
        except OSError:  # how a terminal ends; before, it comes in any number of pieces
            break
    os.close(ours)
    assert shown.count("\n") == 1
    assert f"{COUNT}/{COUNT}" in shown
    assert f"BTF of {COUNT} modules: {COUNT} written" in shown


def test_help_is_about_this_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["modules", "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Usage: btfstep modules ")
    for option in ("base=BASE", "jobs", "btf_features", "lang_exclude", "touch", "no-touch", "no-record", "verbose"):
        assert f" --{option}" in text
    assert "--btf_encode_detached=%.btf" in text
    for option in ("btf_encode", "btf_base"):
        assert not re.search(f"  --{option}(?!_)", text), "it is the default, or spelled --base"
    assert main(["modules", "--usage"]) == 0
    assert capsys.readouterr().out == text.split("\n")[0] + "\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["a.ko"], 64, "no --base"),
        (["--base", "vmlinux"], 64, "no modules"),
        (["--base", "vmlinux", "--btf_encode_detached=out", "a.ko"], 1, "put a % where"),
        (["--base", "missing", "a.ko"], 1, "missing: No such file"),
        (["--base", "missing", "@nowhere"], 1, "nowhere: No such file"),
        (["--base"], 64, "requires a value"),
    ],
)
def test_impossible_command_lines(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["modules", *arguments]) == status
    assert message in capsys.readouterr().err
