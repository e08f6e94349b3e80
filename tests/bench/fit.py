# SPDX-License-Identifier: GPL-2.0-only
"""Straight lines through measurements, and inputs whose sizes are spread well for that."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """y = `intercept` + `slope` * x. `deviation`: how far the point `worst` is from it, the farthest one."""

    slope: float
    intercept: float
    deviation: float
    worst: int

    def at(self, x: float) -> float:
        return self.intercept + self.slope * x


def least_squares(points: Sequence[tuple[float, float]]) -> Line:
    """The line for which the squares of the vertical distances add up to the least.

    Raises ValueError if the points have not two different x.
    """
    if len({x for x, _ in points}) < 2:
        raise ValueError("a line takes points with two different x")
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / math.fsum((x - mean_x) ** 2 for x, _ in points)
    intercept = mean_y - slope * mean_x
    distances = [abs(y - (intercept + slope * x)) for x, y in points]
    worst = max(range(len(points)), key=distances.__getitem__)
    return Line(slope, intercept, distances[worst], worst)


def spread(inputs: Sequence[T], size: Callable[[T], float], count: int, least: float = 0) -> list[T]:
    """About `count` of the inputs, smallest first: the sizes as evenly apart, by factors, as they allow.

    Always with the largest, and with the smallest of at least `least`; those
    below it are only taken where fewer than `count` reach it. Inputs of size 0
    or less are never taken.
    """
    usable = sorted((one for one in inputs if size(one) > 0), key=size)
    large = [one for one in usable if size(one) >= least]
    ordered = large if len(large) >= count else usable[-count:]
    if len(ordered) <= count or count < 2:
        return ordered[-count:] if count > 0 else []
    low, high = math.log(size(ordered[0])), math.log(size(ordered[-1]))
    rest = list(ordered)
    chosen = []
    for step in range(count):
        target = low + (high - low) * step / (count - 1)
        nearest = min(rest, key=lambda one: abs(math.log(size(one)) - target))
        rest.remove(nearest)
        chosen.append(nearest)
    return sorted(chosen, key=size)


def ends_and_middle(inputs: Sequence[T], size: Callable[[T], float]) -> list[T]:
    """The smallest, the median and the largest; fewer if there are fewer."""
    ordered = sorted(inputs, key=size)
    places = sorted({0, (len(ordered) - 1) // 2, len(ordered) - 1}) if ordered else []
    return [ordered[place] for place in places]
