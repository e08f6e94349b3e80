# SPDX-License-Identifier: GPL-2.0-only
"""A kernel source and a directory that it is built in."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from elftools.elf.elffile import ELFFile

HERE = Path(__file__).resolve().parent
CONFIG = HERE / "small.config"
PATCHES = HERE.parent.parent / "kbuild" / "patches"

# By file, and by name of section.
Sections = dict[str, dict[str, bytes]]

# To build a kernel, and to boot it.
PACKAGES = [
    *("bc", "bison", "flex", "gcc", "kmod", "libelf-dev", "libssl-dev", "make", "patch", "xz-utils"),
    *("busybox-static", "cpio", "qemu-system-x86"),
]


class CheckError(Exception):
    """A check that did not hold; the text says which."""


def check(condition: object, what: str) -> None:
    """Print that `what` holds; raise CheckError if it does not."""
    if not condition:
        raise CheckError(what)
    print(f"ok: {what}", flush=True)


def install(packages: Iterable[str]) -> None:
    """Install those of Debian's packages that are not there."""
    missing = []
    for package in packages:
        shown = subprocess.run(
            ["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True
        )
        if shown.stdout != "installed":
            missing.append(package)
    if missing:
        command = ["apt-get", "-qy", "install", "--no-install-recommends", *missing]
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "-q", "update"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environ)


def unpack(version: str, work: Path) -> Path:
    """The source of Debian's ``linux-source-VERSION``, unpacked below `work`."""
    source = work / f"linux-source-{version}"
    if not (source / "Makefile").exists():
        install([f"linux-source-{version}"])
        partial = work / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        with tarfile.open(f"/usr/src/linux-source-{version}.tar.xz") as archive:
            archive.extractall(partial)
        (partial / source.name).rename(source)
        partial.rmdir()
    return source


class Tree:
    """A directory with what is built of `source`; `make` runs there, with `jobs` at a time."""

    def __init__(self, source: Path, objects: Path, *, jobs: int) -> None:
        self.source = source
        self.objects = objects
        self.jobs = jobs

    def configure(self, pahole: Path) -> None:
        """Configure the small kernel anew."""
        self.objects.mkdir(parents=True, exist_ok=True)
        self.make("tinyconfig", pahole=pahole)
        merge = ["scripts/kconfig/merge_config.sh", "-m", "-O", str(self.objects), str(self.objects / ".config")]
        subprocess.run([*merge, str(CONFIG)], check=True, cwd=self.source, stdout=subprocess.DEVNULL)
        self.make("olddefconfig", pahole=pahole)

    def option(self, name: str) -> str | None:
        """The value of a configuration option, None if it is not set."""
        found = re.search(rf"^CONFIG_{name}=(.*)$", (self.objects / ".config").read_text(), re.M)
        return found and found[1]

    def make(self, *targets: str, pahole: Path, **variables: str) -> str:
        """Run make, with what it prints for an answer. Raises CheckError if it fails."""
        settings = [f"{name}={value}" for name, value in variables.items()]
        command = ["make", f"-j{self.jobs}", f"O={self.objects}", f"PAHOLE={pahole}", *settings, *targets]
        environ = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
        done = subprocess.run(
            command, cwd=self.source, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode:
            raise CheckError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
        return done.stdout

    def modules(self) -> list[Path]:
        """The modules, as modules.order names them."""
        names = (self.objects / "modules.order").read_text().split()
        return [self.objects / re.sub(r"\.o$", ".ko", name) for name in names]

    def linked(self) -> list[Path]:
        """What is removed to have the same objects linked anew: vmlinux, by its names, and the modules."""
        return [self.objects / name for name in ("vmlinux", "vmlinux.unstripped")] + self.modules()

    def sections(self) -> Sections:
        """What vmlinux and the modules hold of BTF and of ids in it, by file and section."""
        files = [self.objects / "vmlinux", *self.modules()]
        return {str(file.relative_to(self.objects)): btf_sections(file) for file in files}


def btf_sections(file: Path) -> dict[str, bytes]:
    """The sections of an ELF file that hold BTF or ids in it, by name."""
    with file.open("rb") as stream:
        image = ELFFile(stream)
        found = {name: image.get_section_by_name(name) for name in (".BTF", ".BTF.base", ".BTF_ids")}
        return {name: section.data() for name, section in found.items() if section is not None}


def types_and_strings(btf: bytes) -> tuple[bytes, bytes]:
    """The part of a BTF that is there whether or not it has a layout section."""
    header, type_offset, type_size, string_offset, string_size = struct.unpack_from("<5I", btf, 4)
    types, strings = header + type_offset, header + string_offset
    return btf[types : types + type_size], btf[strings : strings + string_size]
