# SPDX-License-Identifier: GPL-2.0-only
"""The lines of ``scaling`` as a picture: an SVG of two panels, time and memory, points and least-squares lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from .scaling import Series

WIDTH, HEIGHT = 420, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 40, 50  # its margins
COLOURS = {"btfstep": "#0b6e4f", "pahole": "#b3541e"}
TITLES = {"s": "Time (s)", "MB": "Peak memory (MB)"}


def ticks(largest: float, count: int = 5) -> list[float]:
    """Round numbers from 0 up to the first that is no less than `largest`: about `count` steps of 1, 2 or 5."""
    if largest <= 0:
        return [0.0, 1.0]
    rough = largest / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [number * step for number in range(math.ceil(largest / step - 1e-9) + 1)]


def plot(series: Sequence[Series]) -> str:
    """The text of an SVG file."""
    units = list(dict.fromkeys(one.unit for one in series))
    width = WIDTH * len(units)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
    ]
    for place, unit in enumerate(units):
        parts.append(f'<g transform="translate({place * WIDTH} 0)">')
        parts += _panel(unit, [one for one in series if one.unit == unit])
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(unit: str, series: Sequence[Series]) -> list[str]:
    across = ticks(max(x for one in series for x, _ in one.points))
    up = ticks(max(y for one in series for _, y in one.points))

    def x(value: float) -> str:
        return f"{LEFT + value / across[-1] * (WIDTH - LEFT - RIGHT):.1f}"

    def y(value: float) -> str:
        return f"{HEIGHT - BOTTOM - value / up[-1] * (HEIGHT - TOP - BOTTOM):.1f}"

    parts = [f'<text x="{LEFT}" y="20" font-weight="bold">{TITLES[unit]}</text>']
    for tick in up:
        parts.append(f'<path d="M{x(0)} {y(tick)}H{x(across[-1])}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick)}" dy="4" text-anchor="end">{tick:g}</text>')
    for tick in across:
        parts.append(f'<text x="{x(tick)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">.debug_info (MB)</text>')
    for number, one in enumerate(series):
        colour = COLOURS[one.tool]
        line = one.line
        # Not below the axis, where a line that starts there would leave the panel.
        start = max(0.0, -line.intercept / line.slope) if line.slope > 0 else 0.0
        end = max(at for at, _ in one.points)
        if start < end:
            parts.append(f'<path d="M{x(start)} {y(line.at(start))}L{x(end)} {y(line.at(end))}" stroke="{colour}"/>')
        parts += [f'<circle cx="{x(at)}" cy="{y(value)}" r="3.5" fill="{colour}"/>' for at, value in one.points]
        parts.append(f'<text x="{LEFT + 10}" y="{TOP + 14 + 16 * number}" fill="{colour}">{escape(one.tool)}</text>')
    return parts
