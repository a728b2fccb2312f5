"""Who is compared with whom: peers.toml as values."""

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
    """An adapter: a peer's, or one of kiln's own."""

    name: str
    title: str
    command: tuple[str, ...]
    kind: str  # "unit", or "algorithm" where SOURCE holds the name of a spec
    offers: frozenset[str]  # of disk, memory, bounded
    against: str  # the kiln adapter; of kiln's own, nothing
    missing: dict[str, str]  # by row: why there is none
    tests: dict[str, str]  # by row, of kiln's own: what holds kiln to it
    spec: str  # of kind "algorithm"
    rounds: Optional[int]  # at most so many of each figure

    def why_not(self, row: str) -> Optional[str]:
        """Why it has no such row; nothing where it has one."""
        if row in self.missing:
            return self.missing[row]
        if row in FIGURES or "disk" in self.offers:
            return None
        return "it keeps nothing that outlives the process"


@dataclass(frozen=True)
class Table:
    kiln: dict[str, Side]
    peers: dict[str, Side]

    def ours(self, peer: Side) -> Side:
        return self.kiln[peer.against]


def _side(name: str, fields: dict[str, Any]) -> Side:
    known = {"title", "command", "kind", "offers", "against", "missing", "tests", "tests_of", "spec", "rounds"}
    if unknown := set(fields) - known:
        raise ValueError(f"{name}: nobody reads {', '.join(sorted(unknown))}")
    rows = set(fields.get("missing", {})) | set(fields.get("tests", {}))
    if unknown := rows - set(ROWS):
        raise ValueError(f"{name}: there is no row {', '.join(sorted(unknown))}")
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
            raise ValueError(f"{peer.name}: there is no kiln.{peer.against}")
    return table
