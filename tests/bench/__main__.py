# SPDX-License-Identifier: GPL-2.0-only
"""Compare btfstep with the tools that it replaces: ``python -m tests.bench --pahole PATH --vmlinux FILE ...``.

Prints Markdown. Runs alternate, so that all meet the same machine; figures are
medians. Time is that of the whole process, memory its largest resident set,
the mapped input counted (a pahole that starts objcopy counts with it), in
millions of bytes. Ratios: how many times as fast, and the share of the memory.
What btfstep and another tool write is compared, and if it is not the same, the
table says so and the exit status is 1; it is 2 if something could not be
measured. Inputs are not changed.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .inputs import Input, modules_in
from .kernel import detached, in_place, nothing_to_do, vmlinux_h
from .measure import BenchError
from .model import model
from .modules import all_modules, one_module
from .plot import plot
from .scaling import choose, report, scaling
from .tables import Row, figures, megabytes
from .tools import Setup, named

NAMES = {
    "detached": "raw BTF of a vmlinux, at each -j",
    "in-place": "adding .BTF to a vmlinux",
    "module": "one module, three sizes (--modules)",
    "modules": "all modules in one call (--modules)",
    "vmlinux-h": "the C header (--bpftool)",
    "nothing": "a run that finds nothing to do",
    "scaling": "time and memory against input size (--modules, or several --vmlinux)",
    "model": "stages, and what more threads would give",
}


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    about, _, more = (__doc__ or "").partition("\n")
    names = "\n".join(f"  {name:10} {meaning}" for name, meaning in NAMES.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=about.partition(":")[0] + "." + more,
        epilog=f"measurements (--only):\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pahole", type=Path, required=True, help="the pahole to compare with")
    parser.add_argument("--bpftool", type=Path, help="the bpftool to compare with")
    parser.add_argument("--btfstep", type=Path, help="the btfstep (default: beside this python, else in $PATH)")
    parser.add_argument(
        "--vmlinux", type=Path, action="append", required=True, metavar="FILE", help="with DWARF; may be given again"
    )
    parser.add_argument("--modules", type=Path, metavar="DIR", help="modules of the first vmlinux")
    parser.add_argument("-j", "--jobs", type=int, action="append", metavar="N", help="may be given again (default: 1)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="of each, after one that does not count (5)")
    parser.add_argument("--only", metavar="NAME,...", help="some of the measurements (default: all that are possible)")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the lines of scaling")
    parser.add_argument("--features", default="default", metavar="LIST", help="the --btf_features of both (default)")
    parser.add_argument("--tmp", type=Path, metavar="DIR", help="where copies and outputs go (the system's)")
    parser.add_argument("--objcopy", default="objcopy", metavar="PATH", help="the objcopy that pahole uses in place")
    found = parser.parse_args(argv)
    if found.runs < 1 or min(found.jobs or [1]) < 1:
        parser.error("--runs and -j take numbers from 1")
    if unknown := sorted(set((found.only or "").split(",")) - {*NAMES, ""}):
        parser.error(f"--only: {', '.join(unknown)}: unknown; there are {', '.join(NAMES)}")
    return found


def possible(options: argparse.Namespace) -> list[str]:
    """The measurements to make, in the order of `NAMES`: those asked for, else those that there is all for."""
    if options.only:
        asked = options.only.split(",")
        return [name for name in NAMES if name in asked]
    lacking = set()
    if options.modules is None:
        lacking |= {"module", "modules"}
        if len(options.vmlinux) < 2:
            lacking.add("scaling")
    if options.bpftool is None:
        lacking.add("vmlinux-h")
    return [name for name in NAMES if name not in lacking]


@dataclass
class Outcome:
    """The rows of all tables so far, and what could not be measured."""

    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The exit status: 2 if something failed, 1 if outputs are not the same."""
        return 2 if self.failures else 1 if any(row.same is False for row in self.rows) else 0

    @contextmanager
    def step(self) -> Iterator[None]:
        """A measurement that may fail without taking the others with it: they have taken long."""
        try:
            yield
        except BenchError as error:
            self.failures.append(str(error))
            print(f"bench: {error}", file=sys.stderr)


def measure_kernel(
    setup: Setup, names: Sequence[str], source: Input, modules: Sequence[Input], outcome: Outcome
) -> None:
    """Print the table about one vmlinux, and about its modules if there are any, and the model."""
    sizes = f"{megabytes(source.size)}, {megabytes(source.debug_info)} of `.debug_info`"
    print(f"### {source.title}: {sizes}\n", flush=True)
    largest = max(modules, key=lambda one: one.debug_info, default=None)
    measurements: dict[str, Callable[[], list[Row]]] = {
        "detached": lambda: detached(setup, source),
        "in-place": lambda: in_place(setup, source),
        "vmlinux-h": lambda: vmlinux_h(setup, source),
        "nothing": lambda: nothing_to_do(setup, source, largest),
    }
    if modules:
        measurements["module"] = lambda: one_module(setup, setup.with_btf(source), modules)
        measurements["modules"] = lambda: all_modules(setup, setup.with_btf(source), modules)
    rows: list[Row] = []
    for name in names:
        if name in measurements:
            with outcome.step():
                rows += measurements[name]()
    if rows:
        print(figures(rows), flush=True)
        outcome.rows += rows
    if "model" in names:
        with outcome.step():
            print(model(setup, source), flush=True)


def run(options: argparse.Namespace, directory: Path) -> int:
    """Measure all that is asked for. Returns the exit status. Raises BenchError."""
    beside = shutil.which("btfstep", path=str(Path(sys.executable).parent))
    btfstep = options.btfstep or beside or shutil.which("btfstep")
    if btfstep is None:
        raise BenchError("no btfstep found: give --btfstep")
    names = possible(options)
    if options.modules is None and not {"module", "modules"}.isdisjoint(names):
        raise BenchError("module and modules take --modules DIR")
    setup = Setup(
        btfstep=Path(btfstep),
        pahole=options.pahole,
        bpftool=options.bpftool,
        pahole_name=named(options.pahole, "pahole"),
        bpftool_name=named(options.bpftool, "bpftool"),
        jobs=tuple(sorted(set(options.jobs or [1]))),
        runs=options.runs,
        features=options.features,
        directory=directory,
        objcopy=options.objcopy,
    )
    kernels = [Input.of(path) for path in options.vmlinux]
    modules = [] if options.modules is None else modules_in(options.modules)
    print(
        f"Medians of {setup.runs} alternating runs; {os.cpu_count()} processors ({platform.machine()});"
        f" `--btf_features={setup.features}`.\n",
        flush=True,
    )
    outcome = Outcome()
    for number, kernel in enumerate(kernels):
        if set(names) != {"scaling"}:
            measure_kernel(setup, names, kernel, modules if number == 0 else [], outcome)
    if "scaling" in names:
        with outcome.step():
            inputs = choose(kernels, modules)
            rows, series = scaling(setup, inputs)
            outcome.rows += rows
            print(f"### Input size\n\n{report(setup.jobs[0], inputs, rows, series)}", flush=True)
            if options.plot is not None:
                options.plot.write_text(plot(series))
    return outcome.status


def main() -> int:
    options = arguments()
    os.environ["LLVM_OBJCOPY"] = options.objcopy  # pahole reads it
    os.environ.pop("MAKEFLAGS", None)  # below make, btfstep would take no more threads than make has to give
    try:
        with tempfile.TemporaryDirectory(dir=options.tmp, prefix="btfstep-bench-") as directory:
            return run(options, Path(directory))
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
