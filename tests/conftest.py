# SPDX-License-Identifier: GPL-2.0-only
"""What tests share: compilers, small ELF files built with them, and the reference if there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# No libc, no start files: an executable of a few functions, as vmlinux is
# one of many. The entry point is nothing, and there is no note to tell two
# builds of the same source apart.
LINK = ("-nostdlib", "-static", "-Wl,-e0", "-Wl,--build-id=none")

Build = Callable[..., Path]


@pytest.fixture(scope="session", autouse=True)
def outside_of_the_sources() -> None:
    """Let ``python -m btfstep`` find the package that is installed, not the sources, which are not compiled."""
    os.chdir(Path(__file__).parent)


def tool(name: str) -> str:
    """The path of a program; the test is skipped if it is not installed."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="session")
def gcc() -> str:
    return tool("gcc")


@pytest.fixture(scope="session")
def clang() -> str:
    return tool("clang")


@pytest.fixture(scope="session", params=["gcc", "clang"])
def compiler(request: pytest.FixtureRequest) -> str:
    """Each C compiler in turn."""
    return tool(request.param)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """``build(source, *flags, cc="gcc", name="test")``: compile and link C, and return the ELF file's path.

    `source` is one C source text or a list of them, each a unit of its own.
    The file is not relocatable and has DWARF (``-g``) unless `flags` say
    otherwise (``-g0``).
    """

    def compile_and_link(source: str | list[str], *flags: str, cc: str = "gcc", name: str = "test") -> Path:
        sources = [source] if isinstance(source, str) else source
        paths = []
        for number, text in enumerate(sources):
            path = tmp_path / f"{name}-{number}.c"
            path.write_text(text)
            # A relative name: DWARF holds it, and it should not depend on where tests run.
            paths.append(path.name)
        output = tmp_path / f"{name}.elf"
        command = [tool(cc), "-g", "-O2", *flags, *LINK, "-o", output.name, *paths]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return output

    return compile_and_link


@pytest.fixture(scope="session")
def reference() -> str:
    """The path of pahole 1.32, in the directory that $BTFSTEP_REFERENCE names."""
    directory = os.environ.get("BTFSTEP_REFERENCE")
    if not directory:
        pytest.skip("BTFSTEP_REFERENCE is not set (a directory with bin/pahole of version 1.32)")
    return str(Path(directory) / "bin" / "pahole")


@pytest.fixture(scope="session")
def bpftool(reference: str) -> str:
    """The path of the bpftool beside the reference."""
    path = Path(reference).with_name("bpftool")
    if not path.exists():
        pytest.skip("no bpftool beside the reference")
    return str(path)
