# SPDX-License-Identifier: GPL-2.0-only
"""Compare btfstep with a pahole on one vmlinux: ``python -m tests.bench --pahole PATH --vmlinux FILE``.

Runs alternate, so that both meet the same machine, and the figures are medians
and their ratios. Wall time is that of the whole process; memory is the largest
resident set that the kernel saw for it (a pahole that starts objcopy counts
with it). Detached output first; then in place, each time on a fresh copy made
beforehand. Every run's output is compared with the others'.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One child process: seconds of wall time, and the peak of its resident memory in MiB."""

    seconds: float
    mebibytes: float


def measure(command: Sequence[str | Path]) -> Run:
    """Run a command to its end. Raises SystemExit if it fails."""
    started = time.perf_counter()
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command[0]} ended with {child.returncode}")
    return Run(seconds, usage.ru_maxrss / 1024)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def section(path: Path, objcopy: str) -> str:
    """The digest of a file's .BTF section."""
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        out = Path(directory) / "btf"
        subprocess.run(
            [objcopy, "-O", "binary", "--only-section=.BTF", "--set-section-flags", ".BTF=alloc", path, out], check=True
        )
        return digest(out)


def alternate(
    title: str, tools: dict[str, Path], runs: int, command: Callable[[str, Path], Run], output: Callable[[str], str]
) -> None:
    """Run the tools in turn and print a table of medians and ratios."""
    taken: dict[str, list[Run]] = {name: [] for name in tools}
    outputs: dict[str, set[str]] = {name: set() for name in tools}
    for _ in range(runs):
        for name, path in tools.items():
            taken[name].append(command(name, path))
            outputs[name].add(output(name))
    print(f"\n{title}, {runs} runs each, alternating\n")
    print(f"| {'':8} | median s | min s | max s | peak MiB | output |")
    print("| --- | --- | --- | --- | --- | --- |")
    seconds, memory = {}, {}
    for name, each in taken.items():
        times = [run.seconds for run in each]
        seconds[name] = statistics.median(times)
        memory[name] = statistics.median(run.mebibytes for run in each)
        print(
            f"| {name:8} | {seconds[name]:.2f} | {min(times):.2f} | {max(times):.2f} | {memory[name]:.0f} "
            f"| {' '.join(sorted(outputs[name]))} |"
        )
    print(
        f"\nbtfstep is {seconds['pahole'] / seconds['btfstep']:.2f} times as fast, in "
        f"{memory['btfstep'] / memory['pahole']:.2f} of the memory; the output is "
        f"{'the same' if outputs['pahole'] == outputs['btfstep'] and len(outputs['pahole']) == 1 else 'DIFFERENT'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--pahole", type=Path, required=True, help="the pahole to compare with")
    parser.add_argument("--btfstep", type=Path, help="the btfstep (default: beside this python, else in $PATH)")
    parser.add_argument("--vmlinux", type=Path, required=True, help="an ELF file with DWARF; it is not changed")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    parser.add_argument("--features", default="default", metavar="LIST", help="the --btf_features of both")
    parser.add_argument("--only", choices=["detached", "in-place"], help="one of the two comparisons")
    parser.add_argument("--tmp", type=Path, help="where copies and outputs go (default: the system's)")
    parser.add_argument("--objcopy", default="objcopy", help="which objcopy pahole uses in place")
    arguments = parser.parse_args()

    btfstep = (
        arguments.btfstep or shutil.which("btfstep", path=str(Path(sys.executable).parent)) or shutil.which("btfstep")
    )
    if btfstep is None:
        parser.error("no btfstep found: give --btfstep")
    tools = {"pahole": arguments.pahole, "btfstep": Path(btfstep)}
    flags = [f"-j{arguments.jobs}", f"--btf_features={arguments.features}", "--lang_exclude=rust"]
    os.environ["LLVM_OBJCOPY"] = arguments.objcopy
    print(f"{arguments.vmlinux}: {arguments.vmlinux.stat().st_size >> 20} MiB; flags: {' '.join(flags)}")

    with tempfile.TemporaryDirectory(dir=arguments.tmp) as directory:
        out = Path(directory)

        def detached(name: str, tool: Path) -> Run:
            target = out / f"{name}.btf"
            target.unlink(missing_ok=True)
            return measure([tool, f"--btf_encode_detached={target}", *flags, arguments.vmlinux])

        def in_place(name: str, tool: Path) -> Run:
            copy = out / f"{name}.elf"
            shutil.copyfile(arguments.vmlinux, copy)
            copy.chmod(0o644)
            os.sync()  # or the copy's own writing would be measured
            return measure([tool, "-J", *flags, copy])

        if arguments.only != "in-place":
            measure([tools["btfstep"], f"--btf_encode_detached={out / 'warm'}", *flags, arguments.vmlinux])
            alternate("Detached", tools, arguments.runs, detached, lambda name: digest(out / f"{name}.btf"))
        if arguments.only != "detached":
            alternate(
                "In place",
                tools,
                arguments.runs,
                in_place,
                lambda name: section(out / f"{name}.elf", arguments.objcopy),
            )


main()
