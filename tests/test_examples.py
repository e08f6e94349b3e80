# SPDX-License-Identifier: GPL-2.0-only
"""The examples build as their READMEs say: what is run here are the commands written there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import btfstep
from conftest import tool

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RUNNING_KERNEL = Path("/sys/kernel/btf/vmlinux")

# What a kernel tree is here: its make calls $(PAHOLE) for vmlinux.
TREE_MAKEFILE = """
vmlinux: kernel.c
\tgcc -g -O2 -nostdlib -static -Wl,-e0 -o $@.new $<
\t$(PAHOLE) -J --btf_features=default $@.new
\tmv $@.new $@
"""
TREE_SOURCE = """
typedef unsigned long long __u64;
struct task_struct {{ int pid; int tgid; {member} }};
struct sk_buff {{ __u64 when; unsigned int len; }};
int exec(struct task_struct *task) {{ return task->tgid; }}
__u64 send(struct sk_buff *packet) {{ return packet->len; }}
"""


class Example:
    """A copy of the examples, and programs for their commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "examples"
        shutil.copytree(EXAMPLES, self.folder)
        programs = folder / "bin"
        programs.mkdir()
        for name, command in (("btfstep", f"{sys.executable} -m btfstep"), ("python3", sys.executable)):
            (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (programs / name).chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "O")}
        self.environment = {**kept, "PATH": f"{programs}:{os.environ['PATH']}"}

    def commands(self, name: str) -> list[str]:
        """The blocks of shell commands in a README."""
        return re.findall(r"^```sh\n(.*?)^```", (self.folder / name / "README.md").read_text(), re.M | re.S)

    def run(self, name: str, command: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", command],
            cwd=self.folder / name,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def made(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "bpf/build").glob("*.o"))


@pytest.fixture
def example(tmp_path: Path, clang: str) -> Example:
    assert clang
    tool("make")
    return Example(tmp_path)


def test_bpf_with_make_and_with_ninja(example: Example) -> None:
    if not RUNNING_KERNEL.exists():
        pytest.skip(f"the running kernel has no BTF: no {RUNNING_KERNEL}")
    pytest.importorskip("ninja", reason="the PyPI package ninja is not installed")
    tool("ninja")
    make, clean, ninja, uses = example.commands("bpf")
    objects = ["exec.bpf.o", "send.bpf.o"]
    example.run("bpf", make)
    assert example.made() == objects
    assert "Nothing to be done" in example.run("bpf", make)
    assert "struct task_struct" in example.run("bpf", uses)
    example.run("bpf", clean)
    assert example.made() == []
    assert "BPF build/exec.bpf.o" in example.run("bpf", ninja)
    assert example.made() == objects
    assert "no work to do" in example.run("bpf", ninja)


def test_programs_for_a_kernel_tree(example: Example, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "Makefile").write_text(TREE_MAKEFILE)
    (tree / "kernel.c").write_text(TREE_SOURCE.format(member=""))
    (command,) = example.commands("kernel")
    command = command.replace("/path/to/linux", str(tree))
    example.run("kernel", command)
    assert example.made() == ["exec.bpf.o", "send.bpf.o"]
    assert btfstep.open_btf(tree / "vmlinux").find("sk_buff").kind == "struct"

    (tree / "kernel.c").write_text(TREE_SOURCE.format(member="long added;"))
    output = example.run("kernel", command)
    assert "build/exec.bpf.o" in output
    assert "build/send.bpf.o" not in output
    assert "build/exec.bpf.o" not in example.run("kernel", command)


def test_a_real_kernel_tree(example: Example) -> None:
    tree = os.environ.get("BTFSTEP_KERNEL_TREE")
    if not tree:
        pytest.skip("BTFSTEP_KERNEL_TREE is not set (a configured kernel tree, which is built by this)")
    (command,) = example.commands("kernel")
    example.run("kernel", command.replace("/path/to/linux", tree))
    assert example.made() == ["exec.bpf.o", "send.bpf.o"]
