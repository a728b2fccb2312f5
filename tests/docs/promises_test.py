#!/usr/bin/env python3
"""Checks that each test named by a page of promises exists, and that each promise names one.

The pages are docs/internals/never-stale.md and SECURITY.md. A table whose last column is `test` lists promises.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The page, and the minimum number of its promises.
PAGES = {"docs/internals/never-stale.md": 20, "SECURITY.md": 20}
CASE = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)


def cases() -> set[str]:
    sources = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.cpp"))
    return {f"{suite}.{case}" for text in sources for suite, case in CASE.findall(text)}


def ctests() -> str:
    """Returns the CMake files, which register the tests that are not GoogleTest cases."""
    return "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("CMakeLists.txt"))


def promises(text: str) -> list[list[str]]:
    """Returns the cells of each row of the tables whose last column is `test`."""
    rows, is_wanted = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            is_wanted = False
        elif cells[-1] == "test":
            is_wanted = True
        elif is_wanted and set(cells[0]) != {"-"}:
            rows.append(cells)
    return rows


class Promises(unittest.TestCase):
    def test_name_tests_that_exist(self) -> None:
        known, registered = cases(), ctests()
        for page in PAGES:
            with self.subTest(page):
                text = (ROOT / page).read_text(encoding="utf-8")
                named = re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", text)
                self.assertTrue(named)
                self.assertEqual([name for name in named if name not in known], [])
                whole = [name for row in promises(text) for name in re.findall(r"`([a-z]\w*\.[a-z]\w+)`", row[-1])]
                self.assertEqual([name for name in whole if name not in registered], [])

    def test_each_names_a_test(self) -> None:
        for page, fewest in PAGES.items():
            rows = promises((ROOT / page).read_text(encoding="utf-8"))
            with self.subTest(page):
                self.assertGreater(len(rows), fewest)
                for cells in rows:
                    # Lower-case names are ctests that run a whole program.
                    self.assertRegex(cells[-1], r"`(\w+\.\w+|never_stale_[\w-]+)`", cells[0])


if __name__ == "__main__":
    unittest.main()
