# SPDX-License-Identifier: GPL-2.0-only
"""The files to encode: their sizes, copies of them without BTF, and what is in their ``.BTF``."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from .measure import BenchError


@dataclass(frozen=True)
class Input:
    """An ELF file; the sizes of its ``.debug_info`` (decompressed) and of the whole file, in bytes."""

    path: Path
    debug_info: int
    size: int
    has_btf: bool

    @classmethod
    def of(cls, path: Path) -> Input:
        """Raises BenchError if it is no ELF file that can be read."""
        try:
            with path.open("rb") as stream:
                elf = ELFFile(stream)
                section = elf.get_section_by_name(".debug_info")
                size = 0 if section is None else section.data_size
                return cls(path, size, path.stat().st_size, elf.get_section_by_name(".BTF") is not None)
        except (OSError, ELFError) as error:
            raise BenchError(f"{path}: {error}") from None

    @property
    def title(self) -> str:
        """Its name; with its directory's where that says which of several it is."""
        parts = self.path.absolute().parts[-2:]
        return self.path.name if self.path.suffix == ".ko" else "/".join(parts)


def modules_in(directory: Path) -> list[Input]:
    """All modules below a directory that have DWARF, in the order of their names. Raises BenchError without any."""
    found = [one for one in map(Input.of, sorted(directory.rglob("*.ko"))) if one.debug_info]
    if not found:
        raise BenchError(f"{directory}: has no *.ko with debug information")
    return found


def without_btf(source: Path, target: Path, objcopy: str) -> None:
    """Copy an ELF file as it was before it got its BTF. Raises BenchError if objcopy fails."""
    command: list[str | Path] = [objcopy, "--remove-section=.BTF", "--remove-section=.BTF.base", source, target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{source}: {objcopy} cannot copy it: {done.stderr[-300:]}")
    target.chmod(0o644)


def copy_all(pairs: Iterable[tuple[Path, Path]]) -> None:
    """Copy files, and wait until they are on the disk: or their writing would be part of what is measured next."""
    for source, target in pairs:
        target.unlink(missing_ok=True)
        shutil.copyfile(source, target)
    os.sync()


def digest(path: Path) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def btf_of(path: Path) -> bytes | None:
    """What the ``.BTF`` section of an ELF file holds; None if it has none."""
    with path.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".BTF")
        return None if section is None else bytes(section.data())


def btf_digest(path: Path) -> str:
    """Of the ``.BTF`` section of an ELF file; empty if it has none."""
    data = btf_of(path)
    return "" if data is None else hashlib.sha256(data).hexdigest()
