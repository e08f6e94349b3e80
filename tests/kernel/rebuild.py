# SPDX-License-Identifier: GPL-2.0-only
"""Measure what a rebuild of a kernel costs: with pahole, with btfstep, and with btfstep and the patches of kbuild/.

    python tests/kernel/rebuild.py --source 6.12 --work DIR --pahole PATH [--btfstep PATH] [--rounds N]

Takes the tree that boot.py left in DIR, or builds it. In each round each of the three has its turn: everything is
brought up to date, then a source is touched, a function body changed, and a field added to a struct, with make after
each. The table has medians of wall time and of processor time, and how many steps make ran.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tree import PACKAGES, PATCHES, CheckError, Tree, install, unpack


@dataclass
class Change:
    """A change to a source: its name, the file, and a function from the file's text and a number to the new text."""

    title: str
    file: str
    apply: Callable[[str, int], str]


def add_nops(text: str, number: int) -> str:
    """Give bpf_check() `number` more instructions."""
    changed, count = re.subn(
        r"(?<=\nint bpf_check\()(.*?\n{\n)",
        rf'\1\tasm volatile(".rept {number}; nop; .endr");\n',
        text,
        count=1,
        flags=re.S,
    )
    if not count:
        raise CheckError("kernel/bpf/verifier.c has no bpf_check()")
    return changed


def add_field(text: str, number: int) -> str:
    """Give struct bpf_verifier_env a field named after `number`."""
    changed, count = re.subn(r"(?<=\nstruct bpf_verifier_env {\n)", f"\tint added_{number};\n", text, count=1)
    if not count:
        raise CheckError("include/linux/bpf_verifier.h has no struct bpf_verifier_env")
    return changed


CHANGES = [
    Change("nothing", "kernel/bpf/verifier.c", lambda text, number: text),
    Change("touch `kernel/bpf/verifier.c`", "kernel/bpf/verifier.c", lambda text, number: text),
    Change("change a function body in it", "kernel/bpf/verifier.c", add_nops),
    Change("add a field to `struct bpf_verifier_env`", "include/linux/bpf_verifier.h", add_field),
]


@dataclass
class Run:
    """One run of make: seconds of wall time, of processor time, and the steps that it printed, by kind."""

    wall: float
    processor: float
    steps: dict[str, int]


def timed_make(tree: Tree, pahole: Path) -> Run:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    output = tree.make(pahole=pahole)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    steps: dict[str, int] = {}
    for line in output.splitlines():
        if found := re.fullmatch(r"  ([A-Z]+)(?: \[M\])? +\S+\.ko(?:\.linked)?( \(unchanged\))?", line):
            kind = found[1] + (found[2] or "")
            steps[kind] = steps.get(kind, 0) + 1
    return Run(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, steps)


@contextmanager
def patched(source: Path, patches: list[Path]) -> Iterator[None]:
    """The source with the patches applied, for a while."""
    done = []
    try:
        for patch in patches:
            with patch.open() as stream:
                subprocess.run(["patch", "-p1", "-s", "--no-backup-if-mismatch"], cwd=source, stdin=stream, check=True)
            done.append(patch)
        yield
    finally:
        for patch in reversed(done):
            with patch.open() as stream:
                subprocess.run(
                    ["patch", "-p1", "-s", "-R", "--no-backup-if-mismatch"], cwd=source, stdin=stream, check=True
                )


def turn(tree: Tree, pahole: Path, number: int, title: str) -> dict[str, Run]:
    """Bring the tree up to date, and measure make after each change; the sources are put back in the end."""
    tree.make(pahole=pahole)
    originals = {change.file: (tree.source / change.file).read_text() for change in CHANGES}
    runs = {}
    try:
        for change in CHANGES:
            if change is not CHANGES[0]:
                file = tree.source / change.file
                file.write_text(change.apply(originals[change.file], number))
            run = runs[change.title] = timed_make(tree, pahole)
            print(
                f"{number}, {title}, {change.title}: {run.wall:.1f} s, {run.processor:.1f} s, {run.steps}", flush=True
            )
    finally:
        for name, text in originals.items():
            (tree.source / name).write_text(text)
    return runs


def report(taken: dict[str, list[dict[str, Run]]]) -> None:
    """Print the table: a line for each change, columns for each way."""
    print(f"\n| change | {' | '.join(taken)} |")
    print(f"| --- |{' --- |' * len(taken)}")
    for change in CHANGES:
        cells = []
        for turns in taken.values():
            runs = [one[change.title] for one in turns]
            wall = statistics.median(run.wall for run in runs)
            processor = statistics.median(run.processor for run in runs)
            steps = ", ".join(f"{count} {kind}" for kind, count in sorted(runs[-1].steps.items()))
            cells.append(f"{wall:.1f} s, {processor:.1f} s of processors; {steps or 'no module'}")
        print(f"| {change.title} | {' | '.join(cells)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--source",
        default="6.12",
        help="6.12 for Debian's linux-source-6.12, or a directory; it is changed, and put back",
    )
    parser.add_argument(
        "--patches", type=Path, help="where the patches are (default: those of kbuild/ for this version)"
    )
    parser.add_argument("--work", type=Path, required=True, help="where sources and objects go")
    parser.add_argument("--btfstep", type=Path, help="the btfstep (default: beside this python)")
    parser.add_argument("--pahole", type=Path, required=True)
    parser.add_argument(
        "--each", action="store_true", help="measure also with the first patch alone, the first two, ..."
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the sources are put back then, too
    btfstep = arguments.btfstep or Path(sys.executable).parent / "btfstep"
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    install(PACKAGES)
    source = Path(arguments.source).resolve() if "/" in arguments.source else unpack(arguments.source, work)
    version = source.name.removeprefix("linux-source-")
    patches = sorted((arguments.patches or PATCHES / version).glob("*.patch"))
    if not patches:
        parser.error(f"no patches for {version}: give --patches")

    tree = Tree(source, work / f"{source.name}-first", jobs=arguments.jobs)
    if not (tree.objects / ".config").exists():
        tree.configure(btfstep)
    ways = [("pahole", arguments.pahole, 0), ("btfstep", btfstep, 0)]
    for count in range(1 if arguments.each else len(patches), len(patches) + 1):
        ways.append((f"btfstep, {count} patches", btfstep, count))
    taken: dict[str, list[dict[str, Run]]] = {title: [] for title, _, _ in ways}
    for number in range(1, arguments.rounds + 1):
        for title, program, count in ways:
            with patched(source, patches[:count]):
                taken[title].append(turn(tree, program, number, title))
    report(taken)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CheckError as failure:
        sys.exit(f"failed: {failure}")
