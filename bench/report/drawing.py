# SPDX-License-Identifier: Apache-2.0
"""Dot plots on a logarithmic axis, one line of text each, as SVG without scripts, readable on light and dark backgrounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

LEFT, RIGHT, TOP, LINE, WIDTH = 430, 190, 92, 22, 1200
LABEL = 58  # characters that fit before the axis
# Text, background, faint text, grid; then kiln, the other side and a third, in colors that are safe for color blindness.
STYLE = """<style>
.paper{fill:#fff}text{fill:#2b2f36}.faint{fill:#6b7280}.grid{stroke:#e2e5ea}.guide{stroke:#2b2f36;stroke-dasharray:4 3}
.span{stroke:#9aa2ad;stroke-width:2}.kiln{fill:#0072b2;stroke:#0072b2}.other{fill:#d55e00;stroke:#d55e00}.third{fill:#fff;stroke:#0072b2}
@media(prefers-color-scheme:dark){.paper{fill:#16191d}text{fill:#e6e8eb}.faint{fill:#9aa2ad}.grid{stroke:#31363d}
.guide{stroke:#e6e8eb}.span{stroke:#6b7280}.kiln{fill:#56b4e9;stroke:#56b4e9}.other{fill:#e69f00;stroke:#e69f00}.third{fill:#16191d;stroke:#56b4e9}}
</style>"""
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


@dataclass(frozen=True)
class Dot:
    value: float
    look: str  # kiln, other or third


@dataclass(frozen=True)
class Line:
    label: str
    dots: tuple[Dot, ...] = ()  # empty for a heading
    text: str = ""
    between: tuple[float, float] | None = None  # ends of a bar behind the dots


@dataclass
class Plot:
    title: str
    legend: list[tuple[str, str]]  # look, meaning
    times: bool  # the axis shows nanoseconds; else ratios
    guide: float | None = None
    lines: list[Line] = field(default_factory=list)


def tick(decade: int, times: bool) -> str:
    value = 10.0**decade
    if not times:
        return f"{value:g} ×"
    size, unit = next((step for step in UNITS if value >= step[0]), UNITS[-1])
    return f"{value / size:g} {unit}"


def decades(plot: Plot) -> tuple[int, int]:
    values = [dot.value for line in plot.lines for dot in line.dots if dot.value > 0]
    values += [value for line in plot.lines if line.between for value in line.between if value > 0]
    values += [plot.guide] if plot.guide else []
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def draw(plot: Plot) -> str:
    low, high = decades(plot)
    bottom = TOP + LINE * len(plot.lines) + 8

    def x(value: float) -> float:
        at = min(max(math.log10(value) if value > 0 else low, low), high)
        return LEFT + (at - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 24}" width="1000" '
           'font-family="Inter,Helvetica,Arial,sans-serif" font-size="14">', STYLE,
           f'<rect class="paper" width="{WIDTH}" height="{bottom + 24}"/>',
           f'<text x="20" y="30" font-size="18">{escape(plot.title)}</text>']  # fmt: skip
    at = 20.0
    for look, meaning in plot.legend:
        out.append(f'<circle class="{look}" cx="{at + 6:.0f}" cy="52" r="5" stroke-width="2"/><text x="{at + 18:.0f}" y="57">{escape(meaning)}</text>')
        at += 40 + 7.4 * len(meaning)
    for decade in range(low, high + 1):
        here = x(10.0**decade)
        out.append(f'<line class="grid" x1="{here:.1f}" y1="{TOP - 8}" x2="{here:.1f}" y2="{bottom}"/>'
                   f'<text class="faint" x="{here:.1f}" y="{TOP - 14}" font-size="12" text-anchor="middle">{tick(decade, plot.times)}</text>')  # fmt: skip
    if plot.guide:
        out.append(f'<line class="guide" x1="{x(plot.guide):.1f}" y1="{TOP - 8}" x2="{x(plot.guide):.1f}" y2="{bottom}"/>')
    for number, line in enumerate(plot.lines):
        middle = TOP + LINE * number + LINE / 2
        out.extend(one_line(line, middle, x))
    return "\n".join([*out, "</svg>", ""])


def one_line(line: Line, middle: float, x: Callable[[float], float]) -> list[str]:
    if not line.dots:
        return [f'<text x="20" y="{middle + 5:.0f}" font-weight="bold">{escape(line.label)}</text>']
    label = line.label.replace("`", "")
    label = label if len(label) <= LABEL else label[: LABEL - 1] + "…"
    out = [f'<text x="36" y="{middle + 5:.0f}">{escape(label)}</text>']
    if line.between:
        out.append(f'<line class="span" x1="{x(line.between[0]):.1f}" y1="{middle:.0f}" x2="{x(line.between[1]):.1f}" y2="{middle:.0f}"/>')
    out.extend(f'<circle class="{dot.look}" cx="{x(dot.value):.1f}" cy="{middle:.0f}" r="5" stroke-width="2"/>' for dot in line.dots)
    if line.text:
        out.append(f'<text x="{WIDTH - RIGHT + 16}" y="{middle + 5:.0f}" font-size="12">{escape(line.text)}</text>')
    return out
