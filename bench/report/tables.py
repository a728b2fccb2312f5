# SPDX-License-Identifier: Apache-2.0
"""The tables of the documents, by name, created from one run, the reasons and the labels in layout.toml."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import words
from reasons import Reasons
from run import Behavior, Figure, Run


@dataclass(frozen=True)
class Source:
    run: Run
    reasons: Reasons
    layout: dict[str, Any]

    def verdict(self, row: Figure | Behavior) -> str:
        """Returns the text of a row that is behind; empty for other rows."""
        if not row.behind:
            return ""
        return f"**{words.amount_behind(row)}**: {self.reasons.of(row) or 'no reason given'}"

    @property
    def peers(self) -> list[str]:
        """The peers in order of appearance."""
        return list(dict.fromkeys(row.peer for row in self.run.rows if row.peer))

    @property
    def scenarios(self) -> list[str]:
        """The scenarios with a title first, in the order of the layout, then the others."""
        met = dict.fromkeys(row.row for row in self.run.rows if row.peer)
        return [*(row for row in self.layout["rows"] if row in met), *(row for row in met if row not in self.layout["rows"])]

    def title(self, scenario: str) -> tuple[str, str]:
        named = self.layout["rows"].get(scenario, {})
        return named.get("title", scenario.replace("_", " ")), named.get("meaning", "")

    def workload(self, figure: Figure) -> bool:
        return figure.benchmark.startswith("workload_")


def about(source: Source) -> str:
    """Returns a table with the machine and the time of the run."""
    known = dict(source.run.about)
    lines = ["**A quick test run. Do not quote its figures.**\n"] if known.pop("quick", False) else []
    if left_out := known.pop("left_out", []):
        lines.append(f"**A partial run: {', '.join(words.code(part) for part in left_out)} were left out.**\n")
    parts = known.pop("parts", {})
    rows = [[title, str(known[name])] for name, title in source.layout["about"].items() if known.get(name) not in (None, "")]
    if parts:
        rows.append(["duration", f"{sum(parts.values()) / 60:.0f} minutes, {len(parts)} parts"])
    for again in known.get("again", []):
        rows.append(["repeated", f"{again['part']}, {again['date']}, load {again['load']}"])
    return "\n".join([*lines, words.table(["", "this run"], rows)])


def drawing(name: str, text: str) -> str:
    return f"![{text}](../benchmarks-{name}.svg)\n\n"


def in_short(source: Source, scenario: str, peer: str) -> str:
    """Returns a cell of the overview: the ratio of the first figure, and which side behaves correctly."""
    said = []
    figures = [row for row in source.run.figures if (row.row, row.peer) == (scenario, peer)]
    if figures:
        text = f"{words.ratio(figures[0])} ×"
        said.append(f"**{text}**" if figures[0].behind else text)
    behaviors = [row for row in source.run.behaviors if (row.row, row.peer) == (scenario, peer)]
    if behaviors:
        ours, theirs = (all(getattr(row, side) for row in behaviors) for side in ("ours_good", "theirs_good"))
        said.append({(True, True): "both correct", (True, False): "only kiln correct", (False, True): "**only the peer correct**",
                     (False, False): "**neither correct**"}[ours, theirs])  # fmt: skip
    return ", ".join(said) or "–"


def peers(source: Source) -> str:
    """Returns a row for each peer, with the scenarios that have a short name."""
    short = {row: named["short"] for row, named in source.layout["rows"].items() if "short" in named and row in source.scenarios}
    rows = [[peer, *(in_short(source, scenario, peer) for scenario in short)] for peer in source.peers]
    if not rows:
        return "Not part of this run.\n"
    return drawing("peers", "Kiln's time as a fraction of the peer's") + words.table(["kiln / peer", *short.values()], rows)


def named(row: Figure | Behavior) -> str:
    return f"{row.peer}: {row.what}" if row.what else row.peer


def peers_rows(source: Source) -> str:
    """Returns a section for each scenario: the figures, then the behaviors."""
    parts = []
    for scenario in source.scenarios:
        title, meaning = source.title(scenario)
        parts.append(f"### {title}\n\n{meaning}\n" if meaning else f"### {title}\n")
        figures = [row for row in source.run.figures if row.peer and row.row == scenario]
        if figures:
            parts.append(words.table(
                ["peer", "kiln", "peer time", "kiln / peer", "rounds", "command", ""],
                [[named(row), words.quantity(row.ours, row.unit), words.theirs(row), f"{words.ratio(row)} {words.ratio_error(row)}",
                  str(row.n), words.code(row.command), source.verdict(row)] for row in figures]))  # fmt: skip
        behaviors = [row for row in source.run.behaviors if row.row == scenario]
        if behaviors:
            parts.append(words.table(
                ["peer", "kiln", "peer behavior", "kiln's test", "command", ""],
                [[named(row), row.ours, row.theirs if row.theirs_good else f"*{row.theirs}*", words.code(row.test),
                  words.code(row.command), source.verdict(row)] for row in behaviors]))  # fmt: skip
    return "\n".join(parts)


def result_row(source: Source, row: Figure) -> list[str]:
    return [words.code(row.name), words.quantity(row.ours, row.unit), words.theirs(row), f"{words.ratio(row)} {words.ratio_error(row)}",
            words.limit(row), str(row.n), source.verdict(row)]  # fmt: skip


RESULT_HEADING = ["result", "kiln", "baseline", "ratio", "limit", "rounds", ""]


def grouped(source: Source, wanted: Callable[[Figure], bool]) -> str:
    """Returns one table per benchmark, below its command and meaning."""
    parts = []
    figures = [row for row in source.run.figures if not row.peer and wanted(row)]
    for benchmark in dict.fromkeys(row.benchmark for row in figures):
        rows = [row for row in figures if row.benchmark == benchmark]
        parts.append(f"{words.code(rows[0].command)}: {rows[0].meaning}\n")
        parts.append(words.table(RESULT_HEADING, [result_row(source, row) for row in rows]))
    return "\n".join(parts)


def workloads(source: Source) -> str:
    tables = grouped(source, source.workload)
    return drawing("workloads", "Kiln's times and their baselines") + tables if tables else "Not part of this run.\n"


def promises(source: Source) -> str:
    return grouped(source, lambda figure: not source.workload(figure))


def floors(source: Source) -> str:
    """Returns the times of the machine or the vendor library alone, and kiln's times."""
    rows = []
    for floor in source.layout["floors"]:
        figure = source.run.figure(floor["result"])
        if figure is None:
            rows.append([floor["floor"], "–", floor["kiln"], "–", "not part of this run", words.code(floor["result"])])
            continue
        rows.append([floor["floor"], words.quantity(figure.theirs, figure.unit), floor["kiln"],
                     words.quantity(figure.ours, figure.unit), f"{words.ratio(figure)} {words.ratio_error(figure)}",
                     words.code(figure.command)])  # fmt: skip
    table = words.table(["baseline", "time", "kiln", "time", "ratio", "command"], rows)
    return drawing("floors", "Baselines without kiln, and kiln's times") + table


def behind(source: Source) -> str:
    """Returns the number and the list of rows that are behind."""
    rows = [row for row in source.run.rows if row.behind]
    total = len(source.run.rows)
    if not rows:
        return f"In this run none of {total} results is behind a peer or over its limit.\n"
    listed = [[words.code(row.name), words.amount_behind(row), source.reasons.of(row) or "no reason given"] for row in rows]
    return f"In this run {len(rows)} of {total} results are behind a peer or over their limit.\n\n" + words.table(
        ["result", "amount", "reason"], listed
    )


def skipped(source: Source) -> str:
    if not source.run.skipped:
        return "Every part ran.\n"
    together: dict[tuple[str, str], list[str]] = {}  # a missing peer has the same reason in every row
    for row in source.run.skipped:
        together.setdefault((row.peer, row.why), []).append(words.code(row.name))
    return words.table(["peer", "not measured", "reason"], [[peer, ", ".join(names), why] for (peer, why), names in together.items()])


class Said:
    """The values of a result for a template."""

    def __init__(self, row: Figure | Behavior) -> None:
        self.ours, self.theirs, self.ratio, self.change = str(row.ours), str(row.theirs), "", ""
        if isinstance(row, Figure):
            self.ours, self.theirs = words.quantity(row.ours, row.unit), words.quantity(row.theirs, row.unit)
            self.ratio = words.ratio(row)
            percent = round(100 * (row.ratio - 1))
            self.change = f"{percent}% longer" if percent >= 0 else f"{-percent}% less time"


def line(source: Source, template: str) -> str | None:
    """Returns a line of another page with figures of this run; nothing if this run does not have one of them."""
    rows = source.run.rows
    values: dict[str, object] = {"behind": sum(row.behind for row in rows), "all": len(rows)} | {row.name: Said(row) for row in rows}
    try:
        return template.format_map(values).replace(words.SPACE, " ")
    except KeyError as missing:
        print(f"bench/report: the line '{template[:40]}…' is not changed: this run has no {missing}", file=sys.stderr)
        return None


def summary(source: Source) -> str:
    """Returns the short table: texts of layout.toml with figures of this run. Skips and reports a row whose figure is missing
    in this run."""
    values = {row.name: Said(row) for row in source.run.rows}
    layout = source.layout["summary"]
    quick = "**From a quick test run. Do not quote.**\n\n" if source.run.about.get("quick") else ""
    rows = []
    for row in layout["rows"]:
        try:
            rows.append([row[part].format_map(values) for part in ("what", "kiln", "compared")])
        except KeyError as missing:
            print(f"bench/report: summary row '{row['what']}' is skipped: this run has no {missing}", file=sys.stderr)
    return quick + words.table([layout["heading"], "kiln", "compared with"], rows)


TABLES: dict[str, Callable[[Source], str]] = {
    "about": about, "peers": peers, "peers_rows": peers_rows, "workloads": workloads, "floors": floors,
    "promises": promises, "behind": behind, "skipped": skipped, "summary": summary,
}  # fmt: skip
