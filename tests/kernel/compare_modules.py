# SPDX-License-Identifier: GPL-2.0-only
"""Compare real modules' BTF with the reference's: ``python -m tests.kernel.compare_modules --base VMLINUX MODULES...``.

MODULES are files or directories of them; they are copied, never changed. ``btfstep modules`` encodes all of them, in
place and detached, with and without ``distilled_base``, with ``-j1`` and ``-j4``; calls of its own do the same for each
(``--alone N``: each Nth). All of that has to be what the reference makes in place and detached, and no other section
may change. The reference is bin/pahole in the directory that ``--reference`` or $BTFSTEP_REFERENCE names. Takes some
seconds for each module. Ends with status 1, and a line for each difference, if there is one.

With ``--bpftool`` and ``--resolve-btfids`` these programs have to read what btfstep made, too: ``bpftool btf dump file
FILE -B VMLINUX`` and ``resolve_btfids -b VMLINUX FILE``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from elftools.elf.elffile import ELFFile

# The flags of scripts/Makefile.btf for a pahole of version 1.26 or newer, without -j.
FEATURES = "encode_force,var,float,enum64,decl_tag,type_tag,optimized_func,consistent_func,decl_tag_kfuncs"
FLAGS = ("-J", "--lang_exclude=rust")
BTFSTEP = (sys.executable, "-m", "btfstep")
OBJCOPY = os.environ.get("LLVM_OBJCOPY", "objcopy")  # as the reference calls it; for other machines, llvm's
OUTPUTS = (".BTF", ".BTF.base")
PLAIN, DISTILLED = f"--btf_features={FEATURES}", f"--btf_features={FEATURES},distilled_base"

Digests = dict[str, str]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sections(path: Path) -> tuple[Digests, Digests]:
    """Digests of the sections that hold BTF, and of those others that nothing should change."""
    outputs: Digests = {}
    others: Digests = {}
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        names = elf["e_shstrndx"]
        for index, section in enumerate(elf.iter_sections()):
            if index == names or section["sh_type"] == "SHT_NOBITS":
                continue
            stream.seek(section["sh_offset"])
            contents = digest(stream.read(section["sh_size"]))
            if section.name in OUTPUTS:
                outputs[section.name] = contents
            else:
                others[f"{index} {section.name}"] = contents
    return outputs, others


class Comparison:
    """What is compared with what, and the differences found so far."""

    def __init__(self, base: Path, reference: Path, bpftool: Path | None, resolve_btfids: Path | None) -> None:
        self.base = base
        self.pahole = reference
        self.bpftool = bpftool
        self.resolve_btfids = resolve_btfids
        self.expected: dict[tuple[Path, str], Digests] = {}
        self.differences: list[str] = []
        self.compared = 0

    def expect(self, what: str, found: object, expected: object) -> None:
        self.compared += 1
        if found != expected:
            self.differences.append(what)
            print(f"DIFFERENT: {what}", flush=True)

    def run(self, *command: str | Path) -> bool:
        environment = {**os.environ, "LLVM_OBJCOPY": OBJCOPY}
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        if done.returncode:
            print(f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
        return done.returncode == 0

    def copy(self, module: Path, to: Path) -> None:
        """Copy a module as it was before it got its BTF."""
        if not self.run(OBJCOPY, "--remove-section=.BTF", "--remove-section=.BTF.base", module, to):
            raise SystemExit(f"cannot copy {module}")

    def options(self, features: str) -> tuple[str, ...]:
        return (*FLAGS, features, f"--btf_base={self.base}")

    def reference(self, module: Path, directory: Path) -> None:
        """Let the reference encode a module in place."""
        for features in (PLAIN, DISTILLED):
            theirs = directory / "theirs.ko"
            self.copy(module, theirs)
            self.run(self.pahole, *self.options(features), theirs)
            self.expected[module, features] = sections(theirs)[0]
            if not self.expected[module, features]:
                print(f"{module.name}: the reference makes nothing of it")

    def alone(self, module: Path, directory: Path) -> None:
        """Compare one module, encoded by calls of its own."""
        out = directory / "out.btf"
        self.run(self.pahole, *self.options(PLAIN), f"--btf_encode_detached={out}", module)
        raw = taken(out)
        self.expect(f"{module.name}, the reference's detached BTF", raw, self.expected[module, PLAIN].get(".BTF"))
        for features in (PLAIN, DISTILLED):
            name = f"{module.name}, alone{' distilled' if features is DISTILLED else ''}"
            ours = directory / "ours.ko"
            self.copy(module, ours)
            _, others = sections(ours)
            self.run(*BTFSTEP, *self.options(features), "-j4", "--no-record", ours)
            found, unchanged = sections(ours)
            self.expect(f"{name}, in place", found, self.expected[module, features])
            self.expect(f"{name}, other sections", unchanged, others)
            for jobs in ("-j1", "-j4"):
                # As in the reference, there is no place for a distilled base.
                options = (*self.options(features), jobs, "--no-record", f"--btf_encode_detached={out}")
                self.run(*BTFSTEP, *options, module)
                self.expect(f"{name}, detached {jobs}", taken(out), raw)

    def together(self, modules: Sequence[Path], directory: Path, features: str, jobs: str) -> None:
        """Compare all modules, encoded by one call."""
        copies = {module: directory / f"{number}.ko" for number, module in enumerate(modules)}
        for module, copy in copies.items():
            self.copy(module, copy)
        names = directory / "modules.order"
        names.write_text("".join(f"{copy}\n" for copy in copies.values()))
        command = (*BTFSTEP, "modules", *self.options(features), jobs, "--no-record", f"@{names}")
        what = f"by btfstep modules {jobs}{' distilled' if features is DISTILLED else ''}"
        self.expect(f"detached status {what}", self.run(*command, "--btf_encode_detached=%.btf"), True)
        self.expect(f"status {what}", self.run(*command), True)
        for module, copy in copies.items():
            raw = taken(copy.with_name(f"{copy.name}.btf"))
            self.expect(f"{module.name}, detached {what}", raw, self.expected[module, PLAIN].get(".BTF"))
            self.expect(f"{module.name}, {what}", sections(copy)[0], self.expected[module, features])
            if jobs == "-j4":
                self.read(f"{module.name}, {what}", copy)

    def read(self, name: str, module: Path) -> None:
        """Let the kernel's other tools read what btfstep made."""
        if self.bpftool is not None:
            done = self.run(self.bpftool, "btf", "dump", "file", module, "-B", self.base)
            self.expect(f"{name}, read by bpftool", done, True)
        if self.resolve_btfids is not None:
            done = self.run(self.resolve_btfids, "-b", self.base, module)
            self.expect(f"{name}, read by resolve_btfids", done, True)


def taken(path: Path) -> str | None:
    """The digest of a file, which is then removed; None if there is none."""
    if not path.exists():
        return None
    result = digest(path.read_bytes())
    path.unlink()
    return result


def modules_in(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.ko"))
        else:
            yield path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="the vmlinux, or raw BTF, that the modules belong to")
    parser.add_argument("--reference", type=Path, default=os.environ.get("BTFSTEP_REFERENCE"), help="has bin/pahole")
    parser.add_argument("--bpftool", type=Path)
    parser.add_argument("--resolve-btfids", type=Path)
    parser.add_argument("--alone", type=int, default=1, metavar="N", help="calls of its own for each Nth module")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="modules at once")
    parser.add_argument("--scratch", type=Path, help="where to put copies (as large as the modules together)")
    parser.add_argument("modules", type=Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.reference is None:
        parser.error("no --reference, and BTFSTEP_REFERENCE is not set")
    modules = list(modules_in(arguments.modules))
    comparison = Comparison(
        arguments.base, arguments.reference / "bin" / "pahole", arguments.bpftool, arguments.resolve_btfids
    )

    def each(work: Callable[[Path, Path], None], some: Sequence[Path]) -> None:
        def one(module: Path) -> None:
            with tempfile.TemporaryDirectory(dir=arguments.scratch) as directory:
                work(module, Path(directory))

        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(one, some))

    each(comparison.reference, modules)
    for features in (PLAIN, DISTILLED):
        for jobs in ("-j1", "-j4"):
            with tempfile.TemporaryDirectory(dir=arguments.scratch) as together:
                comparison.together(modules, Path(together), features, jobs)
    each(comparison.alone, modules[:: arguments.alone])
    print(f"{len(modules)} modules, {comparison.compared} comparisons, {len(comparison.differences)} differences")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
