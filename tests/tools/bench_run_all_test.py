# SPDX-License-Identifier: Apache-2.0
"""Tests bench/run_all with a fake kiln-bench: the contents of the file when parts succeed, exceed a limit, fail or hang."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
# $1 is the benchmark; the other arguments appear in the reported command.
BENCH = """#!/bin/sh
figure() { echo "{\\"kind\\": \\"figure\\", \\"name\\": \\"$1\\", \\"ratio\\": $2, \\"command\\": \\"$3\\"}"; }
case $1 in
  --list) printf '%s\\n' 'good  goes well' 'over  breaks its limit' 'broken  fails' 'hangs  never ends' 'workers_cold8  is long' ;;
  good) figure good 0.5 "$*"; echo 'no line of JSON' ;;
  workers_cold8) figure workers_cold8 0.5 "$*" ;;
  over) figure over 2 "$*"; exit 1 ;;
  broken) echo 'there is no compiler' >&2; exit 3 ;;
  hangs) figure half 1 "$*"; sleep 60 & echo $! >"$0.child"; wait ;;
esac
"""


def lives(pid: int) -> bool:
    """Returns whether a process is alive; a zombie is not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class RunAll(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "bin").mkdir()
        (self.build / "bin" / "kiln-bench").write_text(BENCH)
        (self.build / "bin" / "kiln-bench").chmod(0o755)

    def run_all(self, *words: str) -> tuple[int, str]:
        command = [sys.executable, "-B", str(ROOT / "bench" / "run_all"), "--build", str(self.build), "-o", str(self.build / "out.jsonl")]
        done = subprocess.run([*command, *words], capture_output=True, text=True)
        return done.returncode, done.stderr

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.build / "out.jsonl").read_text().splitlines()]

    def test_continues_after_part_fails_or_hangs(self) -> None:
        code, output = self.run_all("kiln-bench *", "--bound", "2")
        self.assertEqual(code, 3, output)
        about, *rest = self.lines()
        self.assertEqual(about["kind"], "about")
        for known in ("processor", "cores", "kernel", "commit", "date", "load_before", "load_after", "parts"):
            self.assertIn(known, about)
        self.assertEqual(
            [(line["kind"], line["name"], line.get("why")) for line in rest],
            [("figure", "good", None), ("figure", "over", None), ("skipped", "kiln-bench broken", "ended with 3: there is no compiler"),
             ("figure", "half", None), ("skipped", "kiln-bench hangs", "took longer than 2 s"),
             ("figure", "workers_cold8", None)])  # fmt: skip
        self.assertIn("good printed a line that is not JSON", output)
        child = int((self.build / "bin" / "kiln-bench.child").read_text())
        end = time.monotonic() + 40  # the child ends by itself after 60
        while lives(child) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(lives(child), "the children of a part must end with it")
        self.assertIn("--rounds 2", rest[-1]["command"])
        self.assertNotIn("--rounds", rest[0]["command"])

    def test_exit_code_is_worst_and_repeated_parts_replace_results(self) -> None:
        self.assertEqual(self.run_all("kiln-bench good", "kiln-bench over")[0], 1)
        self.assertEqual(self.run_all("kiln-bench good", "--again", "--quick")[0], 0)
        about, good, over = self.lines()
        self.assertEqual((good["name"], over["name"]), ("good", "over"))
        self.assertIn("--quick", good["command"])
        self.assertIn("kiln-bench hangs", about["left_out"], "a partial file must list the missing parts")
        self.assertEqual([again["part"] for again in about["again"]], ["kiln-bench good"])
        self.assertEqual(self.run_all("kiln-bench nothing")[0], 2)


if __name__ == "__main__":
    unittest.main()
