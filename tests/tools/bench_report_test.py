# SPDX-License-Identifier: Apache-2.0
"""Tests bench/report: the tables it writes from a generated file of results, the input it rejects, and that this tree's pages
match this tree's results."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "report"))

import command  # noqa: E402


ABOUT = {"kind": "about", "processor": "a made-up one", "cores": 2, "date": "today", "load_before": "0.10 0.10 0.10"}
HIT = {"kind": "figure", "name": "disk_hit_28k", "ours": 6.4, "theirs": 5.0, "ratio": 1.28, "spread": 0.01, "n": 200, "limit": 1.5,
       "unit": "us", "settled": True, "compared": "ratio", "benchmark": "disk_hit", "meaning": "a hit, against a read",
       "command": "kiln-bench disk_hit"}  # fmt: skip
REQUEST = HIT | {"name": "request_18", "ours": 15, "theirs": 100, "ratio": 0.15, "limit": 1, "compared": "time", "benchmark": "request_18"}
EXTRA = HIT | {"name": "hit_extra", "ours": 3.4, "theirs": 2.5, "ratio": 0.9, "limit": 1, "unit": "ms", "compared": "difference"}
PEER = {"kind": "figure", "name": "peers_warm_other", "row": "warm_new_process", "peer": "other 1.2", "ours": 0.2, "theirs": 8.0,
        "ratio": 0.025, "spread": 0.002, "n": 15, "limit": 1.0, "unit": "ms", "command": "bench/peers/run warm other"}  # fmt: skip
STALE = {"kind": "behaviour", "name": "peers_stale_other", "row": "stale_header", "peer": "other 1.2", "ours": "compiles again",
         "theirs": "serves the old code", "ours_good": True, "theirs_good": False, "test": "tests/x.cpp: Suite.Case",
         "command": "bench/peers/run stale other"}  # fmt: skip
SKIPPED = {"kind": "skipped", "name": "peers_size_bound_other", "peer": "other 1.2", "why": "it has no bound"}
TABLES = ("about", "summary", "peers", "peers_rows", "workloads", "floors", "promises", "behind", "skipped")
LAYOUT = """
[about]
processor = "processor"
[rows.stale_header]
title = "A header that changed"
short = "stale"
[rows.warm_new_process]
short = "warm"
[[floors]]
floor = "read and checksum"
kiln = "a hit"
result = "disk_hit_28k"
[summary]
heading = "measured"
[[summary.rows]]
what = "a hit"
kiln = "{disk_hit_28k.ours}"
compared = "{disk_hit_28k.ratio} × a read"
[[summary.rows]]
what = "something else"
kiln = "{not_measured.ours}"
compared = ""
"""


class Done(NamedTuple):
    returncode: int
    stderr: str


def report(*words: str) -> Done:
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
        return Done(command.main(list(words)), errors.getvalue())


class Report(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.tables = self.root / "docs" / "_generated"
        self.tables.mkdir(parents=True)
        (self.root / "layout.toml").write_text(LAYOUT)
        self.reasons("")

    def written(self) -> str:
        """Returns the text of all tables."""
        return "".join((self.tables / f"benchmarks-{name.replace('_', '-')}.md").read_text() for name in TABLES)

    def text(self) -> str:
        """Returns the text of all tables with plain spaces."""
        return self.written().replace("\u00a0", " ")

    def reasons(self, text: str) -> None:
        (self.root / "reasons.toml").write_text(text)

    def run_on(self, *lines: object, check: bool = False) -> Done:
        if lines:
            (self.root / "docs" / "benchmarks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        files = ("--reasons", str(self.root / "reasons.toml"), "--layout", str(self.root / "layout.toml"))
        return report("--root", str(self.root), *files, *(["--check"] if check else []))

    def test_replaces_lines_of_other_pages_by_figures_of_run(self) -> None:
        readme = self.root / "README.md"
        readme.write_text("before\nA hit takes 1 s.\nA request: unknown.\nafter\n")
        with open(self.root / "layout.toml", "a", encoding="utf-8") as layout:
            for begins, text in (("A hit", "A hit takes {disk_hit_28k.ours}, {disk_hit_28k.change}; {behind} of {all}."),
                                 ("A request", "A request: {not_in_this_run.ours}.")):  # fmt: skip
                layout.write(f'[[lines]]\npage = "README.md"\nbegins = "{begins}"\ntext = "{text}"\n')
        self.assertEqual(self.run_on(ABOUT, HIT, check=True).returncode, 1, "the page is out of date")
        self.assertEqual(self.run_on(ABOUT, HIT).returncode, 0)
        self.assertEqual(readme.read_text(), "before\nA hit takes 6.40 µs, 28% longer; 0 of 1.\nA request: unknown.\nafter\n")
        self.assertEqual(self.run_on(check=True).returncode, 0)
        readme.write_text("nothing\n")
        self.assertIn("README.md: 0 lines begin with 'A hit'", self.run_on(check=True).stderr)

    def test_writes_rows_of_every_table(self) -> None:
        done = self.run_on(ABOUT, HIT, REQUEST, EXTRA, PEER, STALE, SKIPPED, SKIPPED | {"name": "peers_size_other"})
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, "bench/report: summary row 'something else' is skipped: this run has no 'not_measured'\n")
        page = self.text()
        for row in (
            "| processor | a made-up one |",
            "| kiln / peer | stale | warm |",
            "| other 1.2 | only kiln correct | 0.025 × |",
            "### A header that changed",
            "### warm new process",
            "| other 1.2 | 200 µs | 8.00 ms | 0.025 ± 0.0020 | 15 | `bench/peers/run warm other` |  |",
            "| other 1.2 | compiles again | *serves the old code* | `tests/x.cpp: Suite.Case` | `bench/peers/run stale other` |  |",
            "`kiln-bench disk_hit`: a hit, against a read",
            "| `disk_hit_28k` | 6.40 µs | 5.00 µs | 1.28 ± 0.015 | 1.5 | 200 |  |",
            "| `request_18` | 15.0 µs | 100 µs allowed | 0.15 ± 0.010 | 1 | 200 |  |",
            "| `hit_extra` | 3.40 ms | 2.50 ms | 900 µs more ± 10.0 µs | 1.00 ms | 200 |  |",
            "| read and checksum | 5.00 µs | a hit | 6.40 µs | 1.28 ± 0.015 | `kiln-bench disk_hit` |",
            "none of 5 results is behind",
            "| other 1.2 | `peers_size_bound_other`, `peers_size_other` | it has no bound |",
        ):
            self.assertIn(row, page)
        self.assertIn("| a hit | 6.40 µs | 1.28 × a read |", page)
        drawing = (self.root / "docs" / "benchmarks-peers.svg").read_text()
        self.assertIn("other 1.2", drawing)
        self.assertNotIn("script", drawing)

    def test_result_behind_peer_needs_a_reason(self) -> None:
        behind = PEER | {"ratio": 1.3, "ours": 10.4, "limit": 1.5}
        done = self.run_on(ABOUT, behind)
        self.assertEqual(done.returncode, 1)
        self.assertIn("peers_warm_other is behind; add the reason to reasons.toml", done.stderr)
        self.reasons('"peers_warm_*" = "It checks what it reads."')
        done = self.run_on(ABOUT, behind)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("peers_warm_other: 30 % behind", done.stderr)
        self.assertIn("**30 % behind**: It checks what it reads.", self.written())

    def test_reports_exceeded_limit(self) -> None:
        self.reasons('disk_hit_28k = "A slow disk."\npeers_stale_other = "A bug."')
        done = self.run_on(ABOUT, HIT | {"ratio": 3.3}, STALE | {"ours_good": False})
        self.assertEqual(done.returncode, 0)
        self.assertIn("disk_hit_28k: 2.20 times the limit", done.stderr)
        self.assertIn("| **2.20 times the limit**: A slow disk. |", self.written())
        self.assertIn("In this run 2 of 2 results are behind", self.written())

    def test_marks_quick_and_partial_runs(self) -> None:
        self.run_on(ABOUT | {"quick": True, "left_out": ["peers"]}, HIT)
        self.assertIn("**A quick test run", self.written())
        self.assertIn("**From a quick test run", self.written())
        self.assertIn("**A partial run: `peers` were left out.**", self.written())

    def test_reports_large_spread(self) -> None:
        self.run_on(ABOUT, HIT | {"spread": 0.2, "settled": False}, PEER | {"n": 1, "spread": 1})
        self.assertIn("1.28 ± 0.30, not settled", self.text())
        self.assertIn("0.025 one round", self.written())
        self.reasons('disk_hit_28k = "A busy machine."')
        self.run_on(ABOUT, HIT | {"ratio": 1.65, "spread": 0.2, "settled": False})
        self.assertIn("**10 % over the limit, less than the spread**: A busy machine.", self.written())

    def test_check_detects_edited_result_without_writing(self) -> None:
        self.run_on(ABOUT, HIT)
        self.assertEqual(self.run_on(check=True).returncode, 0)
        page = self.tables / "benchmarks-floors.md"
        edited = page.read_text().replace("1.28", "1.02")
        page.write_text(edited)
        done = self.run_on(check=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("benchmarks-floors.md does not match benchmarks.jsonl", done.stderr)
        self.assertEqual(page.read_text(), edited)

    def test_rejects_invalid_lines_with_location(self) -> None:
        for lines, expected in (
            ([ABOUT, HIT | {"kind": "figur"}], "benchmarks.jsonl:2: unknown kind 'figur'"),
            ([ABOUT, {k: v for k, v in HIT.items() if k != "command"}], "benchmarks.jsonl:2: 'command' is missing"),
            ([ABOUT, HIT | {"ratio": "1"}], "benchmarks.jsonl:2: 'ratio' is missing or not of type float"),
            ([ABOUT, HIT, HIT], "duplicate result 'disk_hit_28k'"),
            ([HIT], "no line of kind 'about'"),
            ([ABOUT, [1]], "benchmarks.jsonl:2: a line must be a JSON object"),
        ):
            done = self.run_on(*lines)
            self.assertEqual(done.returncode, 1, lines)
            self.assertIn(expected, done.stderr)


class Tree(unittest.TestCase):
    def test_pages_match_results(self) -> None:
        done = report("--check")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
