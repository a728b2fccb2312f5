"""What is drawn of a run: each plot by the name of its file."""

from __future__ import annotations

from collections.abc import Callable

import words
from drawing import Dot, Line, Plot, draw
from tables import Source, named


def nanoseconds(value: float, unit: str) -> float:
    return value * words.NANOSECONDS[unit]


def peers(source: Source) -> str | None:
    """Every figure that kiln and a peer both have: how much of the peer's time kiln takes."""
    plot = Plot("Kiln's time as a share of the peer's, the same machine, the same minutes",
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
    """From a load to eighteen algorithms: what the machine takes alone, and kiln on top of it."""
    plot = Plot("What the machine takes alone, and what kiln takes", [("other", "the floor"), ("kiln", "kiln on it")], times=True)
    for floor in source.layout["floors"]:
        row = source.run.figure(floor["result"])
        if row is None or row.unit not in words.NANOSECONDS:
            continue
        theirs, ours = nanoseconds(row.theirs, row.unit), nanoseconds(row.ours, row.unit)
        plot.lines.append(Line(floor["floor"], (Dot(theirs, "other"), Dot(ours, "kiln")),
                               f"{words.ratio(row)} ×", (min(ours, theirs), max(ours, theirs))))  # fmt: skip
    return draw(plot) if plot.lines else None


def workloads(source: Source) -> str | None:
    """Every time of the founding workloads beside what it is compared with, the caller's blocked time among them."""
    plot = Plot("Founding workloads: kiln's times, and what each is compared with",
                [("other", "compared with"), ("kiln", "kiln"), ("third", "kiln: the caller's thread blocked")], times=True)  # fmt: skip
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


PLOTS: dict[str, Callable[[Source], str | None]] = {
    "benchmarks-peers.svg": peers,
    "benchmarks-floors.svg": floors,
    "benchmarks-workloads.svg": workloads,
}
