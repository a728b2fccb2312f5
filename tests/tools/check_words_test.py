# SPDX-License-Identifier: Apache-2.0
"""Tests tools/check_words in a generated repository: what it reports, and what its list must contain."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The words are not those of the project, so that this test does not need an exception.
LIST = "# a comment\n\ngizmo, gizmos: device\nwidget: control  # in dialogs\n"


class CheckWords(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.write("tools/check_words.txt", LIST)

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)
        subprocess.run(["git", "add", "-f", name], cwd=self.root, check=True)

    def check_words(self, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run([sys.executable, "-B", str(ROOT / "tools" / "check_words"), *arguments, str(self.root)],
                              capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def reported(self) -> list[str]:
        code, _, wrong = self.check_words()
        self.assertEqual(code, 1 if wrong else 0, wrong)
        return wrong.splitlines()

    def test_reports_prose_with_file_line_and_replacement(self) -> None:
        self.write("docs/page.md", "# Page\n\nGizmos are fast.\nA device is faster.\n")
        self.assertEqual(self.reported(), ["docs/page.md:3: gizmos; use device"])

    def test_reports_parts_of_identifiers(self) -> None:
        self.write("src/a.cpp", "int find_gizmo();\nclass HTTPGizmo;\nconstexpr int kGizmoCount = 2;\n#define NO_WIDGET\n")
        self.assertEqual(self.reported(), ["src/a.cpp:1: gizmo; use device", "src/a.cpp:2: gizmo; use device",
                                           "src/a.cpp:3: gizmo; use device", "src/a.cpp:4: widget; use control"])

    def test_reports_each_word_of_a_line_once(self) -> None:
        self.write("tools/script", "widget gizmo widget\n")
        self.assertEqual(self.reported(), ["tools/script:1: gizmo; use device", "tools/script:1: widget; use control"])

    def test_ignores_longer_words_data_and_untracked_files(self) -> None:
        self.write("src/a.cpp", "int gizmology, regizmo;\n")
        self.write("tests/golden/data/a.txt", "gizmo\n")
        self.write("fuzz/corpus/a.txt", "gizmo\n")
        self.write("docs/picture.png", "gizmo\n")
        (self.root / "untracked.md").write_text("gizmo\n")
        self.assertEqual(self.reported(), [])

    def test_allows_listed_words_in_listed_paths(self) -> None:
        self.write("src/a.cpp", "gizmo widget\n")
        self.write("src/b.cpp", "gizmo\n")
        self.write("docs/runs/one.txt", "gizmo widget\n")
        self.write("tools/check_words.txt", LIST + "allow src/a.cpp gizmo,gizmos it is a name of the system\n"
                                                   "allow docs/runs/* * they are recorded runs\n")
        self.assertEqual(self.reported(), ["src/a.cpp:1: widget; use control", "src/b.cpp:1: gizmo; use device"])

    def test_exception_without_reason_is_an_error(self) -> None:
        for line in ("allow src/a.cpp gizmo", "allow src/a.cpp"):
            self.write("tools/check_words.txt", LIST + line + "\n")
            code, _, wrong = self.check_words()
            self.assertEqual(code, 1)
            self.assertIn("check_words.txt:5: an exception has no reason", wrong)

    def test_word_without_replacement_is_an_error(self) -> None:
        for line in ("gadget", "gadget:"):
            self.write("tools/check_words.txt", LIST + line + "\n")
            code, _, wrong = self.check_words()
            self.assertEqual(code, 1)
            self.assertIn("check_words.txt:5: a word has no replacement", wrong)

    def test_counts_uses_by_directory(self) -> None:
        self.write("src/a.cpp", "gizmo\ngizmo\n")
        self.write("docs/page.md", "gizmo widget\n")
        self.write("tools/check_words.txt", LIST + "allow docs/* * counted all the same\n")
        code, printed, wrong = self.check_words("--count")
        self.assertEqual((code, wrong), (0, ""))
        self.assertEqual([line.split() for line in printed.splitlines()],
                         [["3", "gizmo", "docs", "1,", "src", "2"], ["1", "widget", "docs", "1"], ["4", "in", "all"]])


if __name__ == "__main__":
    unittest.main()
