# SPDX-License-Identifier: GPL-2.0-only
"""The commands that write headers and dumps, as builds run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import btfstep
from btfmaker import BtfMaker
from conftest import Build, tool

SOURCE = """
struct pair { int a; long b; };
struct user { struct pair *p; struct pair q; };
typedef struct user user_t;
int work(user_t *u) { return u->q.a; }
"""


def run(*arguments: object, cwd: Path | None = None, status: int = 0) -> bytes:
    """Run btfstep; return its output, or the one line that it complains with."""
    command = [sys.executable, "-m", "btfstep", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, check=False)
    assert done.returncode == status, done.stderr
    if status:
        assert done.stdout == b""
        assert done.stderr.count(b"\n") == 1
        return done.stderr
    return done.stdout


@pytest.fixture
def btf(build: Build, tmp_path: Path) -> Path:
    path = tmp_path / "kernel.btf"
    path.write_bytes(btfstep.encode(build(SOURCE)))
    return path


def test_standard_output_and_file_have_the_same(btf: Path, tmp_path: Path) -> None:
    header = run("vmlinux-h", btf)
    assert header == btfstep.open_btf(btf).header()
    assert run("vmlinux-h", btf, "-o", tmp_path / "vmlinux.h") == b""
    assert (tmp_path / "vmlinux.h").read_bytes() == header
    assert run("vmlinux-h", "-j", "2", "--btf_features=default", tmp_path / "test.elf") == header


def test_an_unchanged_header_is_left_alone(btf: Path, tmp_path: Path) -> None:
    output = tmp_path / "vmlinux.h"
    run("vmlinux-h", btf, "-o", output)
    os.utime(output, (1, 1))
    before = output.stat()
    run("vmlinux-h", btf, "-o", output)
    after = output.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_some_types_only(btf: Path) -> None:
    text = run("vmlinux-h", btf, "--only", "pair").decode()
    assert "struct pair {" in text
    assert "user" not in text
    assert "typedef struct user user_t;" in run("vmlinux-h", btf, "--only", "us*_t").decode()
    assert "struct user;\n\ntypedef struct user user_t;" in run("vmlinux-h", btf, "--only=work").decode()
    assert b"no struct, union, enum, typedef or function is named 'zork'" in run(
        "vmlinux-h", btf, "--only=pair,zork", status=1
    )
    assert b"exclude each other" in run("vmlinux-h", btf, "--only=pair", "--root-id=1", status=1)


def test_the_spelling_of_bpftool(btf: Path) -> None:
    whole = btfstep.open_btf(btf)
    assert run("btf", "dump", "file", btf, "format", "c") == whole.header()
    assert run("btf", "dump", "file", btf, "format", "c", "unsorted") == whole.header(sort=False)
    assert run("btf", "dump", "file", btf) == run("dump", btf) == whole.raw()
    assert run("btf", "-j", "dump", "file", btf) == run("dump", btf, "--format=json") == whole.json()
    assert run("btf", "d", "f", btf, "fo", "raw", "-p") == run("dump", btf, "-p") == whole.json(pretty=True)
    assert run("btf", "dump", "file", btf, "format", "c", "root_id", "2", "root_id", "0x1") == whole.header(
        root_ids=[2, 1]
    )
    assert b"there is no JSON of C" in run("btf", "-j", "dump", "file", btf, "format", "c", status=1)
    assert b"use bpftool" in run("btf", "dump", "id", "1", status=1)
    assert b"invalid root ID: 9999" in run("btf", "dump", "file", btf, "root_id", "9999", status=1)
    assert b"given twice" in run("btf", "dump", "file", btf, "root_id", "1", "root_id", "1", status=1)


def test_the_binary_itself(btf: Path, tmp_path: Path) -> None:
    elf = tmp_path / "test.elf"
    encoded = run("dump", elf, "--format", "btf")
    assert encoded == btf.read_bytes() == run("dump", btf, "--format=btf")
    run("-J", elf)
    assert run("dump", elf, "-f", "btf") == encoded
    output = tmp_path / "copy.btf"
    run("dump", elf, "-f", "btf", "-o", output)
    before = output.stat()
    run("dump", elf, "-f", "btf", "-o", output)
    assert output.read_bytes() == encoded
    assert (output.stat().st_ino, output.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert b"always whole" in run("dump", elf, "-f", "btf", "--root-id=1", status=1)
    (tmp_path / "bad.btf").write_bytes(encoded[:-1])
    assert b"bad.btf: strings at" in run("dump", tmp_path / "bad.btf", "-f", "btf", "-o", output, status=1)
    assert output.read_bytes() == encoded


def test_bpftool_agrees(btf: Path, bpftool: str) -> None:
    for words in (["format", "c"], ["format", "c", "unsorted"], ["format", "raw"], ["format", "c", "root_id", "3"]):
        arguments = ["btf", "dump", "file", str(btf), *words]
        done = subprocess.run([bpftool, *arguments], capture_output=True, check=True)
        assert run(*arguments) == done.stdout


def test_help_names_every_option() -> None:
    for command in ("vmlinux-h", "dump", "btf", "modules"):
        assert b"Usage: btfstep " + command.encode() in run(command, "--help")


def test_an_error_leaves_the_old_header(tmp_path: Path) -> None:
    maker = BtfMaker()
    maker.struct("s", 4, [("s", 1, 0)])
    (tmp_path / "bad.btf").write_bytes(maker.data())
    output = tmp_path / "vmlinux.h"
    output.write_text("old")
    complaint = run("vmlinux-h", tmp_path / "bad.btf", "-o", output, "--depfile", tmp_path / "d", status=1)
    assert b"bad.btf: type [1]: contains itself" in complaint
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.btf", "vmlinux.h"]


def test_depfile(btf: Path, tmp_path: Path) -> None:
    run("vmlinux-h", "kernel.btf", "-o", "a b.h", "--depfile", "d", cwd=tmp_path)
    assert (tmp_path / "d").read_text() == "a\\ b.h: kernel.btf\n"
    assert b"--depfile needs -o" in run("vmlinux-h", btf, "--depfile", "d", status=1)


MAKEFILE = """
prog.o: vmlinux.h
\t@echo compile
\t@touch $@
vmlinux.h: kernel.btf
\t@echo header
\t@{command} vmlinux-h $< -o $@ --depfile vmlinux.h.d
-include vmlinux.h.d
"""

NINJA = """
rule header
  command = echo header && {command} vmlinux-h $in -o $out --depfile $out.d
  depfile = $out.d
  deps = gcc
  restat = 1
rule compile
  command = echo compile && touch $out
build vmlinux.h: header kernel.btf
build prog.o: compile vmlinux.h
"""


@pytest.mark.parametrize(("program", "name", "text"), [("make", "Makefile", MAKEFILE), ("ninja", "build.ninja", NINJA)])
def test_a_build_stops_at_an_unchanged_header(program: str, name: str, text: str, btf: Path, tmp_path: Path) -> None:
    tool(program)
    (tmp_path / name).write_text(text.format(command=f"{sys.executable} -m btfstep"))

    def steps() -> list[str]:
        command = [program, "prog.o"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return [step for step in ("header", "compile") if f"{step}\n" in done.stdout]

    assert steps() == ["header", "compile"]
    assert steps() == []
    os.utime(btf, (4_000_000_000, 4_000_000_000))
    assert steps() == ["header"]
    maker = BtfMaker()
    maker.struct("other", 4, [("i", maker.integer("int"), 0)])
    btf.write_bytes(maker.data())
    os.utime(btf, (4_000_000_001, 4_000_000_001))
    assert steps() == ["header", "compile"]
