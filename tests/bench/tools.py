# SPDX-License-Identifier: GPL-2.0-only
"""What all measurements need to know: the tools, the options, where to work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .inputs import Input, btf_of, copy_all, without_btf
from .measure import Argument, BenchError, run


def named(tool: Path | None, name: str) -> str:
    """A tool's name with its version, as in "pahole 1.32". Raises BenchError if it cannot say that."""
    if tool is None:
        return name
    said = run([tool, "--version"]).said
    version = re.search(r"\bv?(\d+\.\d+)", said)
    if version is None:
        raise BenchError(f"{tool}: --version does not tell its version: {said[:100]}")
    return f"{name} {version[1]}"


@dataclass(frozen=True)
class Setup:
    """The tools and their common options.

    Attributes:
        pahole_name, bpftool_name: what tables call them, with their versions.
        jobs: the numbers of threads, each once, smallest first.
        directory: where copies and outputs go; it is removed in the end.
        objcopy: the one that pahole calls, and that makes copies without BTF.
    """

    btfstep: Path
    pahole: Path
    bpftool: Path | None
    pahole_name: str
    bpftool_name: str
    jobs: tuple[int, ...]
    runs: int
    features: str
    directory: Path
    objcopy: str

    def flags(self, jobs: int) -> tuple[str, ...]:
        return (f"-j{jobs}", f"--btf_features={self.features}", "--lang_exclude=rust")

    def detached(self, tool: Path, jobs: int, source: Path, target: Path) -> list[Argument]:
        return [tool, *self.flags(jobs), f"--btf_encode_detached={target}", source]

    def room(self, name: str) -> Path:
        """A directory for one measurement, empty at first."""
        directory = self.directory / name
        directory.mkdir()
        return directory

    def plain(self, source: Input) -> Path:
        """A copy of a vmlinux without BTF, made once."""
        number = f"{source.path.stat().st_ino}-{source.path.name}"
        path = self.directory / f"plain-{number}"
        if not path.exists():
            if source.has_btf:
                without_btf(source.path, path, self.objcopy)
            else:
                copy_all([(source.path, path)])
                path.chmod(0o644)
        return path

    def raw_btf(self, source: Input) -> Path:
        """The BTF of a vmlinux in a file of its own, made once: its own, or encoded from its DWARF."""
        path = self.directory / f"raw-{source.path.stat().st_ino}.btf"
        if not path.exists():
            data = btf_of(source.path)
            if data is None:
                run(self.detached(self.btfstep, self.jobs[-1], source.path, path))
            else:
                path.write_bytes(data)
        if not path.exists():
            raise BenchError(f"{source.path}: no BTF can be made of it")
        return path

    def with_btf(self, source: Input) -> Path:
        """The vmlinux itself if it has BTF, else that BTF in a file of its own."""
        return source.path if source.has_btf else self.raw_btf(source)
