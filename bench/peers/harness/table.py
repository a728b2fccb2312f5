# SPDX-License-Identifier: Apache-2.0
"""The compared sides, read from peers.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

ROWS = (
    "cold",
    "warm_in_process",
    "warm_new_process",
    "eight_cold",
    "stale_header",
    "corrupt_entry",
    "unwritable",
    "size_bound",
)
FIGURES = ROWS[:4]


@dataclass(frozen=True)
class Side:
    """An adapter of a peer or of kiln."""

    name: str
    title: str
    command: tuple[str, ...]
    kind: str  # "unit", or "algorithm" if SOURCE holds the name of a spec
    offers: frozenset[str]  # subset of disk, memory, bounded
    against: str  # name of the kiln adapter; empty for an adapter of kiln
    missing: dict[str, str]  # by row: why the row is missing
    tests: dict[str, str]  # by row, for kiln: the test that checks the behavior
    spec: str  # for kind "algorithm"
    rounds: Optional[int]  # maximum number of rounds of each figure

    def why_not(self, row: str) -> Optional[str]:
        """Returns why this side has no such row; None if it has one."""
        if row in self.missing:
            return self.missing[row]
        if row in FIGURES or "disk" in self.offers:
            return None
        return "it stores nothing beyond the process"


@dataclass(frozen=True)
class Table:
    kiln: dict[str, Side]
    peers: dict[str, Side]

    def ours(self, peer: Side) -> Side:
        return self.kiln[peer.against]


def _side(name: str, fields: dict[str, Any]) -> Side:
    known = {"title", "command", "kind", "offers", "against", "missing", "tests", "tests_of", "spec", "rounds"}
    if unknown := set(fields) - known:
        raise ValueError(f"{name}: unknown field {', '.join(sorted(unknown))}")
    rows = set(fields.get("missing", {})) | set(fields.get("tests", {}))
    if unknown := rows - set(ROWS):
        raise ValueError(f"{name}: unknown row {', '.join(sorted(unknown))}")
    return Side(
        name=name,
        title=fields["title"],
        command=tuple(fields["command"]),
        kind=fields.get("kind", "unit"),
        offers=frozenset(fields.get("offers", ())),
        against=fields.get("against", ""),
        missing=dict(fields.get("missing", {})),
        tests=dict(fields.get("tests", {})),
        spec=fields.get("spec", ""),
        rounds=fields.get("rounds"),
    )


def read_table(path: Path) -> Table:
    with path.open("rb") as file:
        text = tomllib.load(file)
    for fields in text["kiln"].values():
        if "tests_of" in fields:
            fields["tests"] = text["kiln"][fields["tests_of"]]["tests"]
    table = Table(
        kiln={name: _side(name, fields) for name, fields in text["kiln"].items()},
        peers={name: _side(name, fields) for name, fields in text["peers"].items()},
    )
    for peer in table.peers.values():
        if peer.against not in table.kiln:
            raise ValueError(f"{peer.name}: unknown adapter kiln.{peer.against}")
    return table
