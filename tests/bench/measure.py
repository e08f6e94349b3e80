# SPDX-License-Identifier: GPL-2.0-only
"""Run commands in turn, and keep what each took and what each wrote."""

from __future__ import annotations

import atexit
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

Argument = str | Path


class BenchError(Exception):
    """A measurement cannot be made: a command failed, or an input does not suit."""


@dataclass(frozen=True)
class Run:
    """One run of a command.

    Attributes:
        seconds: wall time.
        memory: the peak of its resident memory, in bytes.
        processor: seconds of processor time, of all threads and descendants.
        said: what it printed.
    """

    seconds: float
    memory: int
    processor: float = 0.0
    said: str = ""


@dataclass(frozen=True)
class Contender:
    """A command that takes its turn.

    Attributes:
        name: what it is called in the table.
        command: the command line.
        prepare: called before each run, and not measured.
        output: called after each run, and not measured: what it wrote, or a
            digest of it. None if there is nothing to compare.
        stdout: the file that gets its standard output.
    """

    name: str
    command: Sequence[Argument]
    prepare: Callable[[], object] | None = None
    output: Callable[[], object] | None = None
    stdout: Path | None = None


@dataclass
class Measured:
    """The runs of one contender, and the different outputs that they had (one, if all is well)."""

    name: str
    runs: list[Run] = field(default_factory=list)
    outputs: list[object] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median of wall time."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def memory(self) -> float:
        """The median of peak memory, in bytes."""
        return statistics.median(run.memory for run in self.runs)

    @property
    def spread(self) -> float:
        """How far the slowest run is from the fastest, as a share of the median time."""
        times = [run.seconds for run in self.runs]
        return (max(times) - min(times)) / self.seconds


@cache
def launcher() -> Path:
    """The program that starts commands and measures them, compiled from launch.c; it is removed at exit.

    Raises BenchError without a C compiler.
    """
    directory = tempfile.mkdtemp(prefix="btfstep-launch-")
    atexit.register(shutil.rmtree, directory)
    program = Path(directory) / "launch"
    command: list[Argument] = [os.environ.get("CC", "cc"), "-O1", "-o", program, Path(__file__).with_name("launch.c")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BenchError(f"{command[0]}: {error.strerror}: measuring takes a C compiler") from None
    if done.returncode:
        raise BenchError(f"{command[0]} cannot compile launch.c: {done.stderr[-300:]}")
    return program


def run(command: Sequence[Argument], stdout: Path | None = None) -> Run:
    """Run a command to its end. Raises BenchError if it fails.

    Its standard error is kept, its standard output as well unless `stdout` is to have it.
    """
    with tempfile.TemporaryFile() as report, ExitStack() as stack:
        out = subprocess.PIPE if stdout is None else stack.enter_context(stdout.open("wb"))
        err = subprocess.STDOUT if stdout is None else subprocess.PIPE
        full = [launcher(), str(report.fileno()), *command]
        done = subprocess.run(full, pass_fds=[report.fileno()], stdout=out, stderr=err, check=False)
        report.seek(0)
        told = report.read().split()
    said = (done.stdout if stdout is None else done.stderr).decode(errors="replace")
    status = int(told[2]) if told else done.returncode
    if status:
        raise BenchError(f"{' '.join(map(str, command[:4]))} ...: ended with {status}: {said[-300:]}")
    return Run(float(told[0]), int(told[1]) << 10, float(told[3]), said)


def alternate(contenders: Sequence[Contender], runs: int) -> list[Measured]:
    """Give each contender its turn, `runs` times, so that all meet the same machine; progress goes to standard error.

    One more run of each comes first and does not count: it brings the inputs into memory.
    """
    measured = [Measured(contender.name) for contender in contenders]
    for number in range(-1, runs):
        for contender, taken in zip(contenders, measured, strict=True):
            if contender.prepare is not None:
                contender.prepare()
            result = run(contender.command, contender.stdout)
            if number >= 0:
                taken.runs.append(result)
                print(f"{contender.name}: {result.seconds:.3f} s, {result.memory >> 20} MiB", file=sys.stderr)
            if contender.output is not None and (output := contender.output()) not in taken.outputs:
                taken.outputs.append(output)
    return measured
