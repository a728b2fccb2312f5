# SPDX-License-Identifier: Apache-2.0
"""Tests bench/compare_builds with fake builds, one of which takes twice as long."""
import pathlib
import stat
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CompareBuilds(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def build(self, name: str, program: str) -> str:
        path = pathlib.Path(self.folder.name) / name / "bin" / "kiln-bench"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!{sys.executable}\nimport json, sys\n" + textwrap.dedent(program), encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path.parent.parent)

    def figure(self, name: str, ours: float) -> str:
        return self.build(name, f"""
            print(json.dumps({{"name": sys.argv[1] + "_a", "ours": {ours}, "theirs": 2.0, "unit": "us"}}))
            sys.exit(1)  # a limit is exceeded
            """)

    def compare(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, "-B", ROOT / "bench" / "compare_builds", *words], capture_output=True, text=True)

    def test_prints_ratio_of_each_result(self) -> None:
        done = self.compare(self.figure("before", 3.0), self.figure("after", 6.0), "x", "y", "--rounds", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()[1:]]
        self.assertEqual(rows, [[name, "us", "3", "6", "2.000", "2.000", "2.000", "2.000"] for name in ("x_a", "y_a")])

    def test_reports_failing_build(self) -> None:
        broken = self.build("broken", "sys.exit('no compiler')")
        done = self.compare(self.figure("before", 3.0), self.build("odd", "sys.stderr.write('no compiler'); sys.exit(3)"), "x")
        self.assertEqual(done.returncode, 3)
        self.assertIn("failed with 3: no compiler", done.stderr)
        self.assertEqual(self.compare(broken, broken + "-not", "x").returncode, 2)


if __name__ == "__main__":
    unittest.main()
