# SPDX-License-Identifier: Apache-2.0
"""Tests tools/mutate: the programs that it names exist, and a small tree in which it breaks every line, in several runs."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True

CODE = """int scaled(int value) {
  return value + 1;
}
int used_above(int value) {
  return value - 1;
}
int untested(int value) {
  return value - 2;
}
"""
# A program that runs like a GoogleTest one: CHECKED is what it checks.
TEST = """#include <cstdio>
int scaled(int);
int used_above(int);
int main() {
  std::puts("[ RUN      ] Code.Works");
  if (CHECKED) return 0;
  std::puts("[  FAILED  ] Code.Works (0 ms)");
  return 1;
}
"""
BUILD = """cmake_minimum_required(VERSION 3.22)
project(small CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_library(code STATIC src/remote/redis/code.cpp)
foreach(name leases_redis session_fleet)
  add_executable(test_${name} test.cpp)
  target_link_libraries(test_${name} PRIVATE code)
endforeach()
target_compile_definitions(test_leases_redis PRIVATE "CHECKED=scaled(1) == 2")
target_compile_definitions(test_session_fleet PRIVATE "CHECKED=used_above(2) == 1")
"""


def load():
    loader = importlib.machinery.SourceFileLoader("mutate", str(ROOT / "tools/mutate"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
    loader.exec_module(module)
    return module


class Mutate(unittest.TestCase):
    def test_names_folders_and_programs_of_the_tree(self) -> None:
        mutate = load()
        lists = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("CMakeLists.txt"))
        programs = set(re.findall(r"kiln_test\((\w+)", lists))
        for topics in re.findall(r"(?:set\(|APPEND )topics ([^)]*)\)", lists):
            programs.update(topics.split())
        self.assertEqual(set(mutate.NEAR), set(mutate.FAR))
        for table in (mutate.NEAR, mutate.FAR):
            for folder, names in table.items():
                self.assertTrue((ROOT / "src" / folder).is_dir(), folder)
                self.assertEqual(set(names.split()) - programs, set(), folder)
        for module in mutate.MODULES:
            inside = {str(file.parent.relative_to(ROOT / "src")) for file in (ROOT / "src" / module).rglob("*.cpp")}
            self.assertEqual(inside - set(mutate.NEAR), set(), module)


@unittest.skipUnless(all(map(shutil.which, ("clang++", "ninja", "ld.lld"))), "needs clang, ninja and lld")
class SmallTree(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in (("src/remote/redis/code.cpp", CODE), ("test.cpp", TEST), ("CMakeLists.txt", BUILD), (".gitignore", "/build/\n")):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        (self.root / "tools").mkdir()
        for name in ("mutate", "mutations.py", "mutation_tree.py", "code_digest.py"):
            shutil.copy(ROOT / "tools" / name, self.root / "tools" / name)
        self.commit("first")

    def commit(self, subject: str) -> None:
        git = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@localhost"]
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", subject]):
            subprocess.run([*git, *command], check=True)

    def mutate(self, *options: str) -> tuple[int, str]:
        command = [sys.executable, "-B", str(self.root / "tools/mutate"), "--jobs", "1", "--module", "remote", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def verdicts(self) -> dict:
        runs = json.loads((self.root / "tests/results/progress/mutations.json").read_text())
        return {name: each for run in runs.values() for name, each in run.get("verdicts", {}).items()}

    def recorded(self) -> int:
        return len(self.verdicts())

    def test_continues_and_prints_a_table(self) -> None:
        code, printed = self.mutate("--count", "1")
        self.assertIn("seed 11, 3 lines that can be broken, 1 to try", printed)
        self.assertEqual(self.recorded(), 1)
        code, printed = self.mutate("--minutes", "0.0001")
        self.assertEqual(code, 2, printed)
        self.assertIn("1 of them were tried by earlier runs", printed)
        self.assertIn("the same command continues", printed)
        # As a run leaves it that is killed.
        (self.root / "build/mutate/0/tree/src/remote/redis/code.cpp").write_text("int scaled(int value) { return value + 2; }\n")
        removed = self.root / "build/mutate/0/tree/src/removed.cpp"
        removed.write_text("")
        code, printed = self.mutate()
        self.assertFalse(removed.exists())
        self.assertEqual(code, 1, printed)  # one of three survives
        self.assertRegex(printed, r"remote/redis +3 +2 +1 +0 +0\nall +3 +2 +1 +0 +0\n")
        self.assertRegex(printed, r"survived: src/remote/redis/code.cpp:8: ")
        log = (self.root / "build/mutate/0/log").stat().st_size
        again_code, again = self.mutate()
        self.assertEqual((again_code, again.split("\nmodule")[1]), (code, printed.split("\nmodule")[1]))
        self.assertEqual((self.root / "build/mutate/0/log").stat().st_size, log)  # it built nothing

    def test_starts_over_with_fresh_or_other_code(self) -> None:
        self.mutate("--count", "1")
        self.assertEqual(self.mutate("--count", "1")[1].count(" s)\n"), 0)
        self.assertGreater(self.mutate("--count", "1", "--fresh")[1].count(" s)\n"), 0)
        place = next(iter(self.verdicts())).rsplit(": ", 2)[0]
        self.assertGreater(self.mutate("--count", "1", "--only", place)[1].count(" s)\n"), 0)
        self.commit("second")  # of the same code
        self.assertEqual(self.mutate("--count", "1")[1].count(" s)\n"), 0)
        (self.root / "src/remote/redis/code.hpp").write_text("// new\n")
        self.commit("third")
        self.assertGreater(self.mutate("--count", "1")[1].count(" s)\n"), 0)


if __name__ == "__main__":
    unittest.main()
