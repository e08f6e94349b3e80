# SPDX-License-Identifier: GPL-2.0-only
"""Measurements as Markdown: the table of README's "Figures", with what its rows compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .measure import Measured

FIGURES = ("", "btfstep", "the tool it replaces", "ratio")


@dataclass(frozen=True)
class Row:
    """One comparison: `other` is what btfstep replaces, or another run of btfstep."""

    what: str
    ours: Measured
    other: Measured

    @property
    def same(self) -> bool | None:
        """Whether both wrote the same in all runs; None if there is nothing to compare."""
        if not self.ours.outputs or not self.other.outputs:
            return None
        return len(self.ours.outputs) == 1 and self.ours.outputs == self.other.outputs

    def cells(self) -> tuple[str, str, str, str]:
        """The row of the table: the ratio of times is how many times as fast, that of memory a share."""
        ratios = f"{ratio(self.other.seconds, self.ours.seconds)}, {ratio(self.ours.memory, self.other.memory)}"
        return self.what, cost(self.ours), f"{self.other.name}: {cost(self.other)}", ratios


def seconds(value: float) -> str:
    """Three digits, two below a tenth of a second: 11.7 s, 2.24 s, 0.54 s, 0.088 s."""
    decimals = 3 if value < 0.1 else 2 if value < 10 else 1
    return f"{value:.{decimals}f} s"


def megabytes(value: float) -> str:
    """Bytes as millions of them."""
    return f"{value / 1e6:.0f} MB" if value >= 9.5e6 else f"{value / 1e6:.1f} MB"


def cost(measured: Measured) -> str:
    return f"{seconds(measured.seconds)}, {megabytes(measured.memory)}"


def ratio(above: float, below: float) -> str:
    value = above / below if below else float("inf")
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("|  |", "| |") + "\n"


def figures(rows: Sequence[Row]) -> str:
    """The table of comparisons, and below it whether their outputs were the same and how steady the times were."""
    compared = [row for row in rows if row.same is not None]
    different = [row for row in compared if not row.same]
    lines = [table(FIGURES, [row.cells() for row in rows])]
    if different:
        lines += [f"DIFFERENT: {difference(row)}" for row in different]
    elif compared:
        lines.append(f"All outputs that are to be the same are the same ({len(compared)} compared).")
    spread, name = max((one.spread, f"{row.what}, {one.name}") for row in rows for one in (row.ours, row.other))
    if spread:
        lines.append(f"Slowest and fastest run are at most {spread:.0%} of the median apart ({name}).")
    return "\n".join([*lines, ""])


def difference(row: Row) -> str:
    """What a row's outputs differ in: names, where the outputs are digests by name."""
    ours, theirs = row.ours.outputs[0], row.other.outputs[0]
    if isinstance(ours, dict) and isinstance(theirs, dict):
        names = sorted(str(name) for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        if names:
            return f"{row.what}: {len(names)} of {len(theirs)}: {', '.join(names[:10])}"
    if len(row.ours.outputs) > 1 or len(row.other.outputs) > 1:
        return f"{row.what}: not the same from run to run"
    return row.what
