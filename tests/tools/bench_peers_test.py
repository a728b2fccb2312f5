# SPDX-License-Identifier: Apache-2.0
"""Checks that the harness of bench/peers reports a peer that misbehaves, is missing or crashes, and kiln if it misbehaves; and
that every test named in peers.toml exists. Uses no compiler and no real peer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
FRAME = REPOSITORY / "bench" / "peers"
sys.path.insert(0, str(FRAME))

from harness.table import ROWS, read_table  # noqa: E402


# Each fake peer has one fault and one row that must report it: the reported text, and whether the peer counts as good.
PEERS = {
    "storms": ("eight_cold", "8 compiles", False),
    "slow": ("warm_new_process", "", True),
    "stale": ("stale_header", "serves the old code", False),
    "trusting": ("corrupt_entry", "wrong code served, also in the next process", False),
    "never_heals": ("corrupt_entry", "correct code, never repaired", False),
    "strict": ("unwritable", "an error: PermissionError", False),
    "forgets_the_last": ("size_bound", "0 of the 1 last used still cached", False),
    "grows": ("size_bound", "3.", False),
    "absent": ("stale_header", "", False),
    "crashes": ("unwritable", "", False),
}


def side(section: str, fault: str, rows: list[str]) -> str:
    command = json.dumps(["{python}", "-I", "-S", str(HERE / "fake_peer.py"), fault])
    missing = "\n".join(f'{row} = "it has no such row"' for row in ROWS if row not in rows)
    return f"""
[{section}]
title = "a fake"
command = {command}
against = "fake"
offers = ["disk", "memory", "bounded"]
tests = {{stale_header = "a test"}}
[{section}.missing]
{missing}
"""


class Outcome:
    """The output of the harness for one fake kiln and some fake peers."""

    def __init__(self, ours: str, peers: dict[str, list[str]], *names: str) -> None:
        with tempfile.TemporaryDirectory(prefix="kiln-test-peers-") as folder:
            table = Path(folder, "table.toml")
            table.write_text(side("kiln.fake", ours, list(ROWS)) + "".join(side(f"peers.{it}", it, peers[it]) for it in peers))
            words = [sys.executable, "-B", str(FRAME / "run"), "--quick", "--table", str(table)]
            words += ["--python", sys.executable, *names]
            done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "TMPDIR": folder})
        self.exit_code = done.returncode
        self.said = done.stderr
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]

    def of(self, kind: str, name: str) -> dict[str, Any]:
        found = [line for line in self.lines if (line["kind"], line.get("name")) == (kind, name)]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} lines {kind} {name}:\n{self.lines}\n{self.said}")
        return found[0]


class Misbehaviour(unittest.TestCase):
    outcome: Outcome

    @classmethod
    def setUpClass(cls) -> None:
        cls.outcome = Outcome("none", {fault: [row] for fault, (row, _, _) in PEERS.items()})

    def test_reports_each_peer_misbehavior(self) -> None:
        for fault, (row, words, good) in PEERS.items():
            if not words:
                continue
            with self.subTest(fault):
                name = f"peers_{row}_{'compiles_' if row == 'eight_cold' else ''}{fault}"
                line = self.outcome.of("behaviour", name)
                self.assertIn(words, line["theirs"])
                self.assertEqual((line["ours_good"], line["theirs_good"]), (True, good), line)
                self.assertEqual(line["command"], f"bench/peers/run {row} {fault}")

    def test_figure_is_ratio_of_both_sides(self) -> None:
        line = self.outcome.of("figure", "peers_warm_new_process_slow")
        self.assertEqual((line["ours"], line["theirs"], line["ratio"], line["unit"]), (1, 5, 0.2, "ms"))
        self.assertEqual((line["peer"], line["limit"], line["spread"]), ("a fake 1.0", 1, 0))

    def test_missing_peer_is_reported_as_skipped(self) -> None:
        why = "the module of this peer is not there"
        self.assertEqual(self.outcome.of("skipped", "peers_stale_header_absent")["why"], why)
        self.assertIn(f"SKIPPED absent, all of it: {why}", self.outcome.said)

    def test_missing_row_is_skipped_with_reason(self) -> None:
        self.assertEqual(self.outcome.of("skipped", "peers_cold_stale")["why"], "it has no such row")

    def test_crashing_adapter_is_reported_with_exit_code_3(self) -> None:
        self.assertIn("COULD NOT RUN unwritable crashes: a fake: ended with 139", self.outcome.said)
        self.assertEqual(self.outcome.exit_code, 3)

    def test_first_line_describes_the_run(self) -> None:
        self.assertEqual(self.outcome.lines[0]["kind"], "about")


class ExitCode(unittest.TestCase):
    def test_is_0_if_only_the_peer_misbehaves(self) -> None:
        outcome = Outcome("none", {"stale": ["stale_header"]}, "stale_header")
        self.assertEqual(outcome.exit_code, 0, outcome.said)

    def test_is_1_if_kiln_misbehaves(self) -> None:
        outcome = Outcome("stale", {"none": ["stale_header"]}, "stale_header")
        line = outcome.of("behaviour", "peers_stale_header_none")
        self.assertEqual((line["ours"], line["ours_good"], line["theirs_good"]), ("serves the old code", False, True))
        self.assertEqual((outcome.exit_code, line["test"]), (1, "a test"))

    def test_is_1_if_kiln_is_slower(self) -> None:
        outcome = Outcome("slow", {"none": ["warm_new_process"]}, "warm_new_process")
        self.assertEqual(outcome.of("figure", "peers_warm_new_process_none")["ratio"], 5)
        self.assertEqual(outcome.exit_code, 1, outcome.said)


class Table(unittest.TestCase):
    def setUp(self) -> None:
        self.table = read_table(FRAME / "peers.toml")

    def test_every_kiln_behavior_names_a_test(self) -> None:
        for peer in self.table.peers.values():
            for row in ROWS[3:]:
                with self.subTest(f"{peer.name} {row}"):
                    self.assertTrue(peer.why_not(row) or row in self.table.ours(peer).tests)

    def test_named_tests_exist(self) -> None:
        named = {name for kiln in self.table.kiln.values() for name in kiln.tests.values()}
        self.assertGreater(len(named), 4)
        for name in named:
            with self.subTest(name):
                parts = re.fullmatch(r"(\S+?)(?:: |::)(\S+)", name)
                assert parts is not None
                path, case = parts.groups()
                wanted = f"def {case}(" if path.endswith(".py") else f"({case.replace('.', ', ')})"
                self.assertIn(wanted, (REPOSITORY / path).read_text())


if __name__ == "__main__":
    unittest.main()
