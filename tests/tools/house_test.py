"""tools/house with a tree that was made up: what it counts, and what it wants a reason for."""

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

    def house(self) -> tuple[int, str, str]:
        done = subprocess.run([sys.executable, "-B", str(ROOT / "tools" / "house"), str(self.root)], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def functions(self, text: str) -> list[str]:
        """What is told of the functions of a source, besides the one that is there anyway."""
        self.write("src/core/of_test.cpp", text)
        told = self.house()[1].split("the longest functions of src/\n")[1].split("\n\n")[0].splitlines()
        return [" ".join(line.split()).replace("src/core/of_test.cpp ", "") for line in told if "of_test" in line]

    def test_lines_are_counted_by_room(self) -> None:
        self.write("src/core/a.hpp", "int a;\n" * 5)
        self.write("src/core/b.cpp", "int b;\n" * 7)
        self.write("src/core/picture.png", "no code\n" * 1000)
        code, told, wrong = self.house()
        self.assertEqual((code, wrong), (0, ""))
        self.assertIn("15  lines of src/ in 3 files and 1 functions", told)
        self.assertIn("     12  src/core/\n      3  src/base/\n", told)

    def test_a_function_begins_with_its_first_line_and_ends_with_its_brace(self) -> None:
        self.assertEqual(self.functions("template <typename T>\nT House::room(int first,\n              int last) const {\n"
                                        + body(3) + "}\n\nvoid other() {\n}\n"), ["7 House::room", "2 other"])

    def test_a_constructor_is_one_with_what_it_initialises(self) -> None:
        self.assertEqual(self.functions("House::House(int a)\n    : a_(a),\n      b_{a} {\n" + body(1) + "}\n"), ["5 House::House"])

    def test_members_are_found_in_their_class_and_lambdas_and_branches_are_not_functions(self) -> None:
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

    def test_types_tables_and_macros_are_no_functions(self) -> None:
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

    def test_a_long_file_anywhere_and_a_long_function_of_src_need_a_reason(self) -> None:
        self.write("tests/long_test.py", "pass\n" * 401)
        self.write("src/core/wide.cpp", "void wide() {\n" + body(59) + "}\n")
        self.write("bench/wide.cpp", "void wide() {\n" + body(100) + "}\n")
        code, _, wrong = self.house()
        self.assertEqual((code, wrong.count("\n")), (1, 2), wrong)
        self.assertIn("tests/long_test.py has 401 lines", wrong)
        self.assertIn("src/core/wide.cpp wide has 61 lines", wrong)
        self.write("tools/house.reasons", "# why\ntests/long_test.py: it is a table\nsrc/core/wide.cpp wide: a switch\n")
        code, told, wrong = self.house()
        self.assertEqual((code, wrong), (0, ""))
        self.assertIn("401  tests/long_test.py: it is a table", told)

    def test_a_reason_for_what_is_gone_or_became_short_is_told(self) -> None:
        self.write("tools/house.reasons", "src/base/short.cpp: it was long\nsrc/base/gone.cpp: it was there\n")
        code, _, wrong = self.house()
        self.assertEqual((code, wrong.count("no longer so long")), (1, 2), wrong)


if __name__ == "__main__":
    unittest.main()
