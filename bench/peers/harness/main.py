# SPDX-License-Identifier: Apache-2.0
"""The command line and its output."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Optional

from .adapters import Broken, Host, NotHere, Setup
from .behaviors import BEHAVIORS, Behavior, CannotTell, eight_cold
from .figures import SCENARIOS, Crowd, Scenario
from .measure import Figure, compare
from .table import ROWS, Side, Table, read_table

HERE = Path(__file__).resolve().parents[1]
REPOSITORY = HERE.parents[1]
# The nice value of workers, used for both sides, so that other load affects them equally.
NICENESS = 5

HELD, BROKEN_LIMIT, COULD_NOT_RUN = 0, 1, 3


class Run:
    """A run of rows × peers, each reported as a line of JSON on stdout and a readable line on stderr."""

    def __init__(self, table: Table, setup: Setup, scratch: Path, quick: bool) -> None:
        self._table = table
        self._setup = setup
        self._scratch = scratch
        self._quick = quick
        self._ours: dict[tuple[str, str], Behavior] = {}
        self._titles: dict[str, str] = {}
        self.outcome = HELD

    def host(self) -> Host:
        return Host(self._setup, self._scratch, self._scratch / "pycache")

    def about(self) -> None:
        nvrtc = self._version_or(self._table.peers.get("bare_nvrtc"), "unknown")
        self._tell(
            {
                "kind": "about",
                "machine": f"{len(os.sched_getaffinity(0))} cores of {_processor()}",
                "nvrtc": nvrtc,
                "gpu": "none: code is compiled, never run",
                "commit": _commit(),
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            }
        )

    def peer(self, peer: Side, rows: list[str]) -> None:
        try:
            self._titles[peer.name] = f"{peer.title} {self.host().version(peer)}".strip()
            self.host().version(self._table.ours(peer))
        except NotHere as why:
            self._titles.setdefault(peer.name, peer.title)
            _say(f"SKIPPED {peer.name}, all of it: {why}")
            for row in rows:
                self._skip(peer, row, str(why))
            return
        except Broken as why:
            _say(f"COULD NOT RUN {peer.name}: {why}")
            self.outcome = COULD_NOT_RUN
            return
        for row in rows:
            self._row(peer, row)

    def _row(self, peer: Side, row: str) -> None:
        if reason := peer.why_not(row):
            self._skip(peer, row, reason)
            return
        start = time.monotonic()
        try:
            for scenario in SCENARIOS.get(row, ()):
                self._figures(peer, row, scenario)
            if row in BEHAVIORS:
                self._behavior(peer, row)
        except CannotTell as why:
            _say(f"SKIPPED {row} {peer.name}: {why}")
            self._skip(peer, row, str(why))
        except (Broken, NotHere, OSError) as why:
            _say(f"COULD NOT RUN {row} {peer.name}: {why}")
            self._skip(peer, row, "could not run: see the messages of the run")
            self.outcome = COULD_NOT_RUN
        _say(f"    {row} {peer.name}: {time.monotonic() - start:.1f} s")
        for left in self._scratch.glob("host-*"):
            shutil.rmtree(left, ignore_errors=True)

    def _figures(self, peer: Side, row: str, scenario: Scenario) -> None:
        ours = scenario.turn(self.host, self._table.ours(peer))
        theirs = scenario.turn(self.host, peer)
        budget = scenario.quick if self._quick else scenario.full
        found = compare(ours, theirs, budget if peer.rounds is None else budget.at_most(peer.rounds))
        for name, figure in found.items():
            self._figure(peer, row, name, figure, scenario.units[name])
        if isinstance(ours, Crowd) and isinstance(theirs, Crowd):
            self._tell_behavior(peer, row, eight_cold(ours), eight_cold(theirs))

    def _figure(self, peer: Side, row: str, name: str, figure: Figure, unit: str) -> None:
        settled = figure.spread <= 0.02
        self._tell(
            {
                "kind": "figure",
                "name": f"peers_{name}_{peer.name}",
                "row": name,
                "peer": self._titles[peer.name],
                "ours": _short(figure.ours),
                "theirs": _short(figure.theirs),
                "ratio": _short(figure.ratio),
                "spread": round(figure.spread, 3),
                "n": figure.n,
                "limit": figure.limit,
                "unit": unit,
                "settled": settled,
                "command": f"bench/peers/run {row} {peer.name}",
            }
        )
        _say(
            f"{name:28} {peer.name:22} {figure.ours:10.3f} {figure.theirs:10.3f} {unit:2} ratio {figure.ratio:.3f} "
            f"({figure.n} rounds, spread {100 * figure.spread:.1f} %)"
            + ("" if figure.within else "  BEHIND")
            + ("" if settled else "  not settled")
        )
        if not figure.within:
            self._break()

    def _behavior(self, peer: Side, row: str) -> None:
        """Runs both sides at once, because nothing is timed."""
        our_side = self._table.ours(peer)
        see = BEHAVIORS[row]
        with ThreadPoolExecutor(2) as pool:
            theirs = pool.submit(see, self.host, peer, self._quick)
            if (row, our_side.name) not in self._ours:  # the same for every peer
                self._ours[row, our_side.name] = see(self.host, our_side, self._quick)
        self._tell_behavior(peer, row, self._ours[row, our_side.name], theirs.result())

    def _tell_behavior(self, peer: Side, row: str, ours: Behavior, theirs: Behavior) -> None:
        self._tell(
            {
                "kind": "behaviour",
                "name": f"peers_{row}_{'compiles_' if row in SCENARIOS else ''}{peer.name}",
                "row": row,
                "peer": self._titles[peer.name],
                "ours": ours.words,
                "theirs": theirs.words,
                "ours_good": ours.good,
                "theirs_good": theirs.good,
                "test": self._table.ours(peer).tests.get(row, ""),
                "command": f"bench/peers/run {row} {peer.name}",
            }
        )
        _say(f"{row:28} {peer.name:22} ours: {ours.words}; theirs: {theirs.words}" + ("" if ours.good else "  NOT HELD"))
        if not ours.good:
            self._break()

    def _skip(self, peer: Side, row: str, why: str) -> None:
        line = {"kind": "skipped", "name": f"peers_{row}_{peer.name}", "row": row, "peer": self._titles[peer.name]}
        self._tell({**line, "why": why})

    def _break(self) -> None:
        if self.outcome == HELD:
            self.outcome = BROKEN_LIMIT

    def _version_or(self, side: Optional[Side], other: str) -> str:
        try:
            return other if side is None else self.host().version(side)
        except (NotHere, Broken):
            return other

    @staticmethod
    def _tell(line: dict[str, object]) -> None:
        print(json.dumps(line, ensure_ascii=False), flush=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def _commit() -> str:
    done = subprocess.run(["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/peers/run",
        description="Compares kiln with its peers. Writes lines of JSON to stdout and progress to stderr. "
        "Exit code: 0, 1 if kiln is behind or misbehaves, 3 if something could not run.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows and peers to run (default: all)")
    parser.add_argument("--list", action="store_true", help="list the rows and peers")
    parser.add_argument("--quick", action="store_true", help="run a few rounds of each, for testing")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build" / "release", help="build directory (default: build/release)")
    parser.add_argument("--python", help="Python interpreter with the peers (default: .venv)")
    parser.add_argument("--table", type=Path, default=HERE / "peers.toml", help="table of the compared sides")
    return parser.parse_args(words)


def _chosen(names: list[str], table: Table) -> tuple[list[str], list[Side]]:
    if unknown := [name for name in names if name not in ROWS and name not in table.peers]:
        raise SystemExit(f"bench/peers/run: unknown name {', '.join(unknown)}; --list lists the names")
    rows = [row for row in ROWS if row in names] or list(ROWS)
    peers = [peer for name, peer in table.peers.items() if name in names] or list(table.peers.values())
    return rows, peers


def main(words: list[str]) -> int:
    arguments = _arguments(words)
    table = read_table(arguments.table)
    if arguments.list:
        print("rows:  " + " ".join(ROWS))
        for peer in table.peers.values():
            print(f"peer:  {peer.name:22} {peer.title}, against {table.ours(peer).title}")
        return HELD
    rows, peers = _chosen(arguments.names, table)
    python = REPOSITORY / ".venv" / "bin" / "python"
    setup = Setup(arguments.build.resolve(), arguments.python or (str(python) if python.exists() else sys.executable))
    os.nice(max(0, NICENESS - os.nice(0)))
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kiln-peers-") as folder:
        Path(folder).chmod(0o755)
        run = Run(table, setup, Path(folder), arguments.quick)
        run.about()
        for peer in peers:
            run.peer(peer, rows)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = time.monotonic() - start
    _say(f"total: {taken:.0f} s, and {used.ru_utime + used.ru_stime:.0f} s of CPU time")
    return run.outcome
