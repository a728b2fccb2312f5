# SPDX-License-Identifier: Apache-2.0
"""One benchmark run, as written by bench/run_all: JSON lines of four kinds, validated when they are read."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Mistake(Exception):
    """An error in the results file or in a page, which its author must fix."""


@dataclass(frozen=True)
class Figure:
    name: str
    ours: float
    theirs: float
    ratio: float  # ours / theirs; ours - theirs if compared is "difference"
    spread: float  # error of ratio, as a fraction of limit
    n: int
    limit: float
    unit: str
    command: str
    settled: bool
    compared: str = "ratio"  # or "difference", or "time": theirs is an allowed time
    benchmark: str = ""
    meaning: str = ""
    peer: str = ""
    row: str = ""
    what: str = ""  # distinguishes several figures of one peer and row

    @property
    def allowed(self) -> float:
        """The maximum of ratio. Kiln must be ahead of a peer, regardless of the limit."""
        return min(self.limit, 1.0) if self.peer else self.limit

    @property
    def behind(self) -> bool:
        return self.ratio > self.allowed


@dataclass(frozen=True)
class Behavior:
    name: str
    row: str
    peer: str
    ours: str
    theirs: str
    ours_good: bool
    theirs_good: bool
    test: str
    command: str
    what: str = ""

    @property
    def behind(self) -> bool:
        return not self.ours_good


@dataclass(frozen=True)
class Skipped:
    name: str
    why: str
    peer: str = ""


@dataclass
class Run:
    about: dict[str, Any] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    behaviors: list[Behavior] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def rows(self) -> list[Figure | Behavior]:
        return [*self.figures, *self.behaviors]

    def figure(self, name: str) -> Figure | None:
        return next((figure for figure in self.figures if figure.name == name), None)


# The required fields of a line; the other fields of a Figure are optional. A result is settled if its line says so, or if
# its spread is below the threshold that most benchmarks use.
FIGURE = {"name": str, "ours": float, "theirs": float, "ratio": float, "spread": float, "n": int, "limit": float,
          "unit": str, "command": str}  # fmt: skip
OPTIONAL = {"compared": str, "benchmark": str, "meaning": str, "peer": str, "row": str, "what": str}
BEHAVIOR = {"name": str, "row": str, "peer": str, "ours": str, "theirs": str, "ours_good": bool, "theirs_good": bool,
             "test": str, "command": str}  # fmt: skip
SMALL_SPREAD = 0.05


def taken(line: dict[str, Any], fields: Mapping[str, type]) -> dict[str, Any]:
    values = {}
    for name, kind in fields.items():
        value = line.get(name)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise Mistake(f"'{name}' is missing or not of type {kind.__name__}")
        if name in ("name", "command") and not value:
            raise Mistake(f"'{name}' is empty")
        values[name] = value
    return values


def present(line: dict[str, Any], fields: Mapping[str, type]) -> dict[str, Any]:
    return taken(line, {name: kind for name, kind in fields.items() if line.get(name) is not None})


def add(run: Run, line: dict[str, Any]) -> None:
    kind = line.get("kind")
    if kind == "about":
        run.about |= {name: value for name, value in line.items() if name != "kind"}
    elif kind == "figure":
        settled = line.get("settled")
        values = taken(line, FIGURE) | present(line, OPTIONAL)
        if settled is None:
            settled = values["spread"] <= SMALL_SPREAD
        run.figures.append(Figure(**values, settled=bool(settled)))
    elif kind == "behaviour":
        run.behaviors.append(Behavior(**taken(line, BEHAVIOR), **present(line, {"what": str})))
    elif kind == "skipped":
        run.skipped.append(Skipped(**taken(line, {"name": str, "why": str}), **present(line, {"peer": str})))
    else:
        raise Mistake(f"unknown kind '{kind}'")


def read(path: pathlib.Path) -> Run:
    run = Run()
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            if not isinstance(line, dict):
                raise Mistake("a line must be a JSON object")
            add(run, line)
        except (json.JSONDecodeError, Mistake) as mistake:
            raise Mistake(f"{path.name}:{number}: {mistake}") from None
    names = [row.name for row in run.rows]
    for name in sorted({name for name in names if names.count(name) > 1}):
        raise Mistake(f"{path.name}: duplicate result '{name}'")
    if not run.about:
        raise Mistake(f"{path.name}: no line of kind 'about'")
    return run
