# SPDX-License-Identifier: GPL-2.0-only
"""What more threads would give: a model made of measured stages.

Decoding is divided among the threads, each unit is merged alone, and what
comes before and after has one thread. So, with T threads,

    time = rest + max((decode + merge) / T, merge)

It leaves out what no stage shows: that processors share caches, memory and
their clock, that the first unit is decoded before any is merged, and waiting
for the disk.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from .inputs import Input
from .measure import BenchError, Contender, Run, alternate
from .tables import seconds, table
from .tools import Setup

THREADS = (1, 2, 4, 8, 28)

# The lines of btfstep -V that say how long a stage took.
STAGES = {
    "decode": "decode units",
    "merge": "merge units",
    "headers": "read headers and symbols",
    "choose": "choose functions and write",
}


@dataclass(frozen=True)
class Stages:
    """Seconds of one run with one thread. `rest`: all that is neither decode nor merge, `headers` and `choose` too.

    Processor time, so that what else the machine does is no part of it; but
    `headers` and `choose` are by the clock.
    """

    decode: float
    merge: float
    headers: float
    choose: float
    rest: float

    def at(self, threads: int) -> float:
        """Seconds that the model gives for a number of threads."""
        return self.rest + max((self.decode + self.merge) / threads, self.merge)

    @property
    def useful(self) -> float:
        """As many threads as keep the merge busy: more give nothing."""
        return (self.decode + self.merge) / self.merge if self.merge else float("inf")

    def limit(self, threads: int) -> str:
        """What takes most of the time, and its share."""
        merging = threads >= self.useful
        units = self.merge if merging else (self.decode + self.merge) / threads
        parts = {"merging, one unit at a time" if merging else "decoding and merging": units, "the rest": self.rest}
        name, value = max(parts.items(), key=lambda part: part[1])
        return f"{name}: {value / self.at(threads):.0%}"


def stages_of(run: Run) -> Stages:
    """What a run with -V and -j1 said. Raises BenchError if it did not say all."""
    found = {}
    for name, line in STAGES.items():
        times = re.findall(rf"^btfstep: {line}: ([0-9.]+) s\b", run.said, re.MULTILINE)
        if not times:
            raise BenchError(f"btfstep -V does not say how long it took to {line}")
        found[name] = sum(map(float, times))
    return Stages(**found, rest=max(0.0, run.processor - found["decode"] - found["merge"]))


def median(runs: Sequence[Stages]) -> Stages:
    """The median of each stage."""
    return Stages(*(statistics.median(getattr(one, name) for one in runs) for name in Stages.__dataclass_fields__))


def model(setup: Setup, source: Input) -> str:
    """Measure the stages with one thread, and whole runs at each -j; the model beside them."""
    room = setup.room("model")
    outs = {jobs: room / f"{jobs}.btf" for jobs in (0, *setup.jobs)}
    verbose = [*setup.detached(setup.btfstep, 1, source.path, outs[0]), "-V"]
    contenders = [Contender("btfstep -j1 -V", verbose, prepare=partial(outs[0].unlink, missing_ok=True))]
    contenders += [
        Contender(
            f"btfstep -j{jobs}",
            setup.detached(setup.btfstep, jobs, source.path, outs[jobs]),
            prepare=partial(outs[jobs].unlink, missing_ok=True),
        )
        for jobs in setup.jobs
    ]
    staged, *whole = alternate(contenders, setup.runs)
    measured = {jobs: one.seconds for jobs, one in zip(setup.jobs, whole, strict=True)}
    return describe(median([stages_of(run) for run in staged.runs]), measured)


def describe(stages: Stages, measured: dict[int, float]) -> str:
    """The stages, and the model's table; `measured`: seconds of whole runs by number of threads."""
    rows = []
    for threads in sorted({*THREADS, *measured}):
        time = stages.at(threads)
        found = seconds(measured[threads]) if threads in measured else ""
        rows.append((str(threads), seconds(time), f"{stages.at(1) / time:.1f}", found, stages.limit(threads)))
    return "\n".join(
        [
            f"Processor time with one thread: decode {seconds(stages.decode)}, merge {seconds(stages.merge)}, the rest"
            f" {seconds(stages.rest)}. By the clock: read headers and symbols {seconds(stages.headers)}, choose"
            f" functions and write {seconds(stages.choose)}.\n",
            table(("threads", "model", "times as fast as one", "measured", "what takes most of it"), rows),
            f"{stages.useful:.1f} threads keep the merge busy; more than that give nothing, and the time stays at"
            f" {seconds(stages.rest + stages.merge)}.\n",
        ]
    )
