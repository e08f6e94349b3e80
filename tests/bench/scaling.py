# SPDX-License-Identifier: GPL-2.0-only
"""Time and memory against the size of the input: straight lines, if all is well."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from .fit import Line, least_squares, spread
from .inputs import Input, digest
from .measure import BenchError, Contender, Measured, alternate
from .tables import Row, cost, figures, megabytes, seconds, table
from .tools import Setup

# Below this, start-up is what would be measured.
LEAST = 1e6
INPUTS = 7


@dataclass(frozen=True)
class Series:
    """One tool's measurements of one quantity: points (megabytes of .debug_info, value in `unit`), and their line."""

    tool: str
    unit: str
    points: list[tuple[float, float]]

    @property
    def line(self) -> Line:
        return least_squares(self.points)


QUANTITIES: dict[str, Callable[[Measured], float]] = {"s": lambda one: one.seconds, "MB": lambda one: one.memory / 1e6}


def choose(kernels: Sequence[Input], modules: Sequence[Input], count: int = INPUTS) -> list[Input]:
    """All of the kernels, and modules to make them `count`, the sizes spread evenly. Raises BenchError for one size."""
    most = min((one.debug_info for one in kernels), default=float("inf"))
    between = [one for one in modules if one.debug_info < most]
    chosen = spread(between, lambda one: one.debug_info, max(2, count - len(kernels)), LEAST) + sorted(
        kernels, key=lambda one: one.debug_info
    )
    if len({one.debug_info for one in chosen}) < 2:
        raise BenchError("scaling takes inputs of different size: give --modules, or --vmlinux more than once")
    return chosen


def scaling(setup: Setup, inputs: Sequence[Input]) -> tuple[list[Row], list[Series]]:
    """Each input detached, without a base, at the first -j: a row each, and time and memory of each tool."""
    room = setup.room("scaling")
    jobs = setup.jobs[0]
    rows = []
    for one in inputs:
        contenders = []
        for name, tool in (("btfstep", setup.btfstep), ("pahole", setup.pahole)):
            out = room / f"{name}.btf"
            contenders.append(
                Contender(
                    "btfstep" if name == "btfstep" else setup.pahole_name,
                    setup.detached(tool, jobs, one.path, out),
                    prepare=partial(out.unlink, missing_ok=True),
                    output=partial(digest, out),
                )
            )
        rows.append(Row(one.title, *alternate(contenders, setup.runs)))
    shutil.rmtree(room)
    sizes = [one.debug_info / 1e6 for one in inputs]
    series = [
        Series(tool, unit, [(x, value(measured)) for x, measured in zip(sizes, column, strict=True)])
        for tool, column in (("btfstep", [row.ours for row in rows]), ("pahole", [row.other for row in rows]))
        for unit, value in QUANTITIES.items()
    ]
    return rows, series


def report(jobs: int, inputs: Sequence[Input], rows: Sequence[Row], series: Sequence[Series]) -> str:
    """The measurements, the lines through them, and how far the points are from these."""
    head = ("input", "`.debug_info`", "btfstep", "pahole", "ratio")
    body = [
        (row.what, megabytes(one.debug_info), cost(row.ours), cost(row.other), row.cells()[-1])
        for one, row in zip(inputs, rows, strict=True)
    ]
    lines = []
    for one in series:
        line = one.line
        show = seconds if one.unit == "s" else lambda value: f"{value:.1f} MB"
        share = line.deviation / max(y for _, y in one.points)
        lines.append(
            (
                f"{one.tool}, {'time' if one.unit == 's' else 'memory'}",
                f"{show(line.intercept)} + {line.slope:.4g} {one.unit} for each MB",
                f"{show(line.deviation)}, {share:.1%} of the largest value ({inputs[line.worst].title})",
            )
        )
    verdict = figures(rows).split("\n\n", 1)[1]  # without the table: the one here has the sizes
    return "\n".join(
        [
            f"Detached, without a base, `-j{jobs}`, by the size of `.debug_info`:\n",
            table(head, body),
            table(("line", "least squares", "largest deviation"), lines),
            verdict,
        ]
    )
