# SPDX-License-Identifier: Apache-2.0
"""tools/evidence records the output of a command with its commit, runs nothing twice on one tree, and quotes what was printed."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "evidence"
CAMPAIGNS = """
[[campaign]]
name = "count"
claim = "counts"
command = "echo counted | tee -a ran; echo 'figure: 7 of 7'"
minutes = 1
figures = ['^figure: (.*)']

[[campaign]]
name = "long"
claim = "takes long"
command = "echo 'figure: 1'"
minutes = 90
figures = ['^figure: (.*)']
"""


class Evidence(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("tools", "tests/results", "docs/_generated", "src"):
            (self.root / name).mkdir(parents=True)
        for name in ("evidence", "code_digest.py"):
            shutil.copy(TOOL.parent / name, self.root / "tools" / name)
        (self.root / "tools" / "evidence.toml").write_text(CAMPAIGNS)
        self.git("init", "-q")
        self.commit_code("one")

    def git(self, *words):
        names = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
        subprocess.run(["git", *names, *words], cwd=self.root, check=True, stdout=subprocess.DEVNULL)

    def commit_code(self, text):
        (self.root / "src" / "a.cpp").write_text(text)
        self.git("add", "src")
        self.git("commit", "-qm", text)

    def run_tool(self, *arguments):
        tool = [sys.executable, "-B", self.root / "tools" / "evidence", *arguments]
        return subprocess.run(tool, capture_output=True, text=True, check=False)

    def page(self):
        self.assertEqual(self.run_tool("--page").returncode, 0)
        return (self.root / "docs/_generated/evidence.md").read_text()

    def times_run(self):
        return (self.root / "ran").read_text().count("counted")

    def test_runs_once_per_tree_and_quotes_the_output(self):
        self.assertEqual(self.run_tool("--minutes", "5").returncode, 0)
        self.assertEqual(self.run_tool("--minutes", "5").returncode, 0)
        self.assertEqual(self.times_run(), 1)
        self.assertIn("| counts | 7 of 7 |", self.page())
        self.assertIn("Not run again since the code changed: `long`.", self.page())
        self.commit_code("two")
        self.assertIn("older code", self.run_tool("--list").stdout)
        self.assertEqual(self.run_tool("count").returncode, 0)
        self.assertEqual(self.times_run(), 2)

    def test_refuses_changed_code_and_names_a_missing_figure(self):
        (self.root / "src" / "a.cpp").write_text("changed")
        self.assertIn("not committed", self.run_tool("count").stderr)
        self.commit_code("changed")
        self.run_tool("count")
        self.page()
        self.assertEqual(self.run_tool("--check").returncode, 0)
        result = self.root / "tests/results/count.txt"
        result.write_text(result.read_text().replace("\nfigure: 7 of 7", ""))
        found = self.run_tool("--check")
        self.assertEqual(found.returncode, 1)
        self.assertIn("no line matches", found.stderr)
        self.assertIn("run 'tools/evidence --page'", found.stderr)

    def test_a_failed_command_is_recorded_as_failed(self):
        toml = self.root / "tools" / "evidence.toml"
        toml.write_text(CAMPAIGNS.replace("7 of 7'", "6 of 7'; exit 3"))
        self.assertEqual(self.run_tool("count").returncode, 1)
        self.assertIn("6 of 7<br>**exit code 3**", self.page())


if __name__ == "__main__":
    unittest.main()
