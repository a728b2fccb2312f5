# SPDX-License-Identifier: Apache-2.0
"""Tests tools/check_size on a generated tree: what it counts, and what needs a reason."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def body(lines: int, margin: str = "") -> str:
    return "".join(f"{margin}  call({n});\n" for n in range(lines))


class House(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/base/short.cpp", "int one() {\n  return 1;\n}\n")

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def check_size(self, *options: str) -> tuple[int, str, str]:
        command = [sys.executable, "-B", str(ROOT / "tools" / "check_size"), *options, str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def functions(self, text: str) -> list[str]:
        """Returns the reported functions of a source, without the one that is always present."""
        self.write("src/core/of_test.cpp", text)
        printed = self.check_size()[1].split("the longest functions of src/\n")[1].split("\n\n")[0].splitlines()
        return [" ".join(line.split()).replace("src/core/of_test.cpp ", "") for line in printed if "of_test" in line]

    def test_counts_lines_by_module(self) -> None:
        self.write("src/core/a.hpp", "int a;\n" * 5)
        self.write("src/core/b.cpp", "int b;\n" * 7)
        self.write("src/core/picture.png", "no code\n" * 1000)
        code, printed, wrong = self.check_size()
        self.assertEqual((code, wrong), (0, ""))
        self.assertIn("15  lines of src/ in 3 files and 1 functions", printed)
        self.assertIn("     12  src/core/\n      3  src/base/\n", printed)

    def test_report_has_folders_and_words_and_checks_nothing(self) -> None:
        self.write("src/core/a.hpp", "#pragma once\n\n// comment\nint a;\n")
        self.write("tests/long_test.py", "# comment\n" + "pass\n" * 401)
        self.write("docs/how-to/page.md", "# Three words | here\n")
        code, printed, wrong = self.check_size("--report")
        self.assertEqual((code, wrong), (0, ""))
        self.assertIn("      3        3      1  src/base/\n      4        2      1  src/core/\n    402      401      1  tests/\n"
                      "    409      406      3  all\n", printed)
        self.assertIn("the longest functions\n      3  src/base/short.cpp one\n", printed)
        self.assertIn("the longest files\n    402  tests/long_test.py\n", printed)
        self.assertIn("       3 words  how-to: 1 pages\n", printed)

    def test_function_spans_signature_to_closing_brace(self) -> None:
        self.assertEqual(self.functions("template <typename T>\nT House::room(int first,\n              int last) const {\n"
                                        + body(3) + "}\n\nvoid other() {\n}\n"), ["7 House::room", "2 other"])

    def test_constructor_includes_initializer_list(self) -> None:
        self.assertEqual(self.functions("House::House(int a)\n    : a_(a),\n      b_{a} {\n" + body(1) + "}\n"), ["5 House::House"])

    def test_counts_class_members_but_not_lambdas_or_branches(self) -> None:
        self.assertEqual(self.functions(textwrap.dedent("""\
            namespace kiln {
            class House final : public Home {
             public:
              bool operator==(const House& other) const {
                return rooms == other.rooms;
              }
              int rooms() const { return 9; }
              void enter() {
                if (open) {
                  go([&] {
                    step();
                  });
                }
              }
            };
            struct flock record(short type) {
              return {};
            }
            }  // namespace kiln
            """)), ["7 enter", "3 operator==", "3 record"])

    def test_ignores_types_tables_and_macros(self) -> None:
        self.assertEqual(self.functions(textwrap.dedent("""\
            #define TWICE(x) {  \\
              x;                \\
            }
            enum class Room {
              Base,
            };
            constexpr Row kRows[] = {
                {"a (b) {"},
                {"c"}};
            void after() {
            }
            """)), ["2 after"])

    def test_long_files_and_src_functions_need_a_reason(self) -> None:
        self.write("tests/long_test.py", "pass\n" * 401)
        self.write("src/core/wide.cpp", "void wide() {\n" + body(59) + "}\n")
        self.write("bench/wide.cpp", "void wide() {\n" + body(100) + "}\n")
        code, _, wrong = self.check_size()
        self.assertEqual((code, wrong.count("\n")), (1, 2), wrong)
        self.assertIn("tests/long_test.py has 401 lines", wrong)
        self.assertIn("src/core/wide.cpp wide has 61 lines", wrong)
        self.write("tools/check_size.exceptions", "# why\ntests/long_test.py: it is a table\nsrc/core/wide.cpp wide: a switch\n")
        code, printed, wrong = self.check_size()
        self.assertEqual((code, wrong), (0, ""))
        self.assertIn("401  tests/long_test.py: it is a table", printed)

    def test_reports_obsolete_reasons(self) -> None:
        self.write("tools/check_size.exceptions", "src/base/short.cpp: it was long\nsrc/base/gone.cpp: it was there\n")
        code, _, wrong = self.check_size()
        self.assertEqual((code, wrong.count("no longer too long")), (1, 2), wrong)


if __name__ == "__main__":
    unittest.main()
