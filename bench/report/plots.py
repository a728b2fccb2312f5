# SPDX-License-Identifier: Apache-2.0
"""The plots of a run, by file name."""

from __future__ import annotations

from collections.abc import Callable

import words
from drawing import Dot, Line, Plot, draw
from tables import Source, named


def nanoseconds(value: float, unit: str) -> float:
    return value * words.NANOSECONDS[unit]


def peers(source: Source) -> str | None:
    """Plots kiln's time as a fraction of the peer's, for every figure that both have."""
    plot = Plot("Kiln's time as a fraction of the peer's, measured together on one machine",
                [("kiln", "kiln is ahead"), ("other", "kiln is behind")], times=False, guide=1.0)  # fmt: skip
    for scenario in source.scenarios:
        figures = [row for row in source.run.figures if row.peer and row.row == scenario and row.ratio > 0]
        if not figures:
            continue
        plot.lines.append(Line(source.title(scenario)[0]))
        for row in figures:
            off = row.spread * row.limit if row.n > 1 else 0.0
            plot.lines.append(
                Line(named(row), (Dot(row.ratio, "other" if row.behind else "kiln"),),
                     f"{words.quantity(row.ours, row.unit)} : {words.quantity(row.theirs, row.unit)}",
                     (max(row.ratio - off, row.ratio / 3), row.ratio + off)))  # fmt: skip
    return draw(plot) if plot.lines else None


def floors(source: Source) -> str | None:
    """Plots the baselines, from a load to eighteen algorithms, and kiln's time on top of them."""
    plot = Plot("Baselines without kiln, and kiln's times", [("other", "baseline"), ("kiln", "kiln")], times=True)
    for floor in source.layout["floors"]:
        row = source.run.figure(floor["result"])
        if row is None or row.unit not in words.NANOSECONDS:
            continue
        theirs, ours = nanoseconds(row.theirs, row.unit), nanoseconds(row.ours, row.unit)
        plot.lines.append(Line(floor["floor"], (Dot(theirs, "other"), Dot(ours, "kiln")),
                               f"{words.ratio(row)} ×", (min(ours, theirs), max(ours, theirs))))  # fmt: skip
    return draw(plot) if plot.lines else None


def workloads(source: Source) -> str | None:
    """Plots every time of the predefined workloads next to its baseline, including the caller's blocked time."""
    plot = Plot("Predefined workloads: kiln's times and their baselines",
                [("other", "baseline"), ("kiln", "kiln"), ("third", "kiln: caller's thread blocked")], times=True)  # fmt: skip
    figures = [row for row in source.run.figures if source.workload(row) and row.unit in words.NANOSECONDS]
    for benchmark in dict.fromkeys(row.benchmark for row in figures):
        plot.lines.append(Line(source.layout.get("workloads", {}).get(benchmark, benchmark)))
        for row in figures:
            if row.benchmark != benchmark:
                continue
            theirs, ours = nanoseconds(row.theirs, row.unit), nanoseconds(row.ours, row.unit)
            label = row.name.removeprefix(f"{benchmark}_").replace("_", " ")
            dots = (Dot(theirs, "other"), Dot(ours, "third" if "blocked" in row.name else "kiln"))
            text = f"{words.quantity(row.ours, row.unit)} : {words.quantity(row.theirs, row.unit)}"
            plot.lines.append(Line(label, dots, text, (min(ours, theirs), max(ours, theirs))))
    return draw(plot) if plot.lines else None


def before_after(source: Source) -> str | None:
    """Draws the bars of the README: the largest predefined workload without and with kiln, on a linear scale."""
    names = {"cold_last.theirs": "bare compilers, in every process", "cold_last.ours": "kiln, first run on a machine",
             "fleet_last.ours": "kiln, empty host + remote cache", "second_last.ours": "kiln, second process"}  # fmt: skip
    times = []
    for name in names:
        result, side = name.split(".")
        row = source.run.figure(f"workload_all_{result}")
        if row is None:
            return None
        times.append((getattr(row, side), row.unit))
    said = [words.quantity(*time).replace(words.SPACE, " ") for time in times]
    most = max(nanoseconds(*time) for time in times)
    title = "Time until 18 CCCL algorithms and 14 NVRTC units (85 kernels) are ready"
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 222" width="800" height="222" role="img" aria-labelledby="t d" '
           "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"14\">",
           f'  <title id="t">{title}</title>',
           f'  <desc id="d">{" ".join(f"{name}: {text}." for name, text in zip(names.values(), said))}</desc>',
           '  <rect width="800" height="222" rx="8" fill="#ffffff"/>',
           f'  <text x="20" y="28" font-weight="600" fill="#1f2328">{title}</text>']  # fmt: skip
    for number, (label, time, text) in enumerate(zip(names.values(), times, said)):
        top, width = 51 + 36 * number, max(440 * nanoseconds(*time) / most, 1)
        out += [f'  <text x="262" y="{top + 15}" text-anchor="end" fill="#1f2328">{label}</text>',
                f'  <rect x="274" y="{top}" width="{width:.1f}" height="22" rx="{min(3, width / 2):.1f}" fill="{"#c4472b" if number else "#8c959f"}"/>',
                f'  <text x="{282 + width:.0f}" y="{top + 16}" font-weight="600" fill="#1f2328">{text}</text>']  # fmt: skip
    date = str(source.run.about.get("date", ""))[:7]
    out += [f'  <text x="20" y="207" font-size="12" fill="#59636e">Linear scale. kiln-bench workload_all, {date}: two shared cores, no GPU, '
            "sm_80; cache server on the same machine.</text>", "</svg>", ""]  # fmt: skip
    return "\n".join(out)


PLOTS: dict[str, Callable[[Source], str | None]] = {
    "benchmarks-peers.svg": peers,
    "benchmarks-floors.svg": floors,
    "benchmarks-workloads.svg": workloads,
    "images/before-after.svg": before_after,
}
