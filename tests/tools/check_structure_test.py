# SPDX-License-Identifier: Apache-2.0
"""Tests tools/check_structure on a copy of the tree, in which one thing is wrong."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CheckStructure(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("include", "src", "apps"):
            shutil.copytree(ROOT / name, self.root / name)
        (self.root / "docs").mkdir()
        shutil.copy(ROOT / "docs/ARCHITECTURE.md", self.root / "docs")

    def check(self) -> tuple[int, str, str]:
        command = [sys.executable, "-B", str(ROOT / "tools/check_structure"), str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        self.assertIn(old, text)
        (self.root / name).write_text(text.replace(old, new, 1))

    def rejected(self, reason: str) -> None:
        code, _, errors = self.check()
        self.assertEqual(code, 1)
        self.assertIn(reason, errors)
        self.assertEqual(errors.count("check_structure:"), 1, errors)

    def test_accepts_the_tree(self) -> None:
        code, printed, errors = self.check()
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("implementations of the request sequence: 1 (src/engine/resolver.cpp)", printed)

    def test_rejects_a_second_request_sequence(self) -> None:
        (self.root / "src/session/second.cpp").write_text("void f() {\n  claims.acquire(key);\n  store->put(key);\n}\n")
        self.rejected("src/session/second.cpp: acquires claims and stores artifacts")

    def test_rejects_state_without_a_reason(self) -> None:
        (self.root / "src/core/state.hpp").write_text("struct A {\n  std::function<void()> call;  // the caller's\n};\n")
        self.assertEqual(self.check()[0], 0)
        (self.root / "src/core/state.hpp").write_text("struct A {\n  std::function<void()> call;\n};\n")
        self.rejected("src/core/state.hpp:2: std::function call")
        (self.root / "src/core/state.hpp").write_text("thread_local int depth = 0;\n")
        self.rejected("src/core/state.hpp:1: thread_local depth")

    def test_rejects_a_walk_that_is_not_in_the_code(self) -> None:
        self.replace("docs/ARCHITECTURE.md", "`session/session_requests.cpp`", "`session/orders.cpp`")
        self.rejected("names session/orders.cpp, which does not exist")

    def test_rejects_a_walk_without_a_connection(self) -> None:
        self.replace("docs/ARCHITECTURE.md", "`apps/kiln/command_line.cpp`", "`base/json.cpp`")
        code, _, errors = self.check()
        self.assertEqual(code, 1)
        self.assertIn("no file before base/json.cpp includes its header", errors)

    def test_rejects_a_walk_that_names_a_file_twice(self) -> None:
        self.replace("docs/ARCHITECTURE.md", "`engine/engine_state.cpp`", "`engine/engine.cpp`")
        self.rejected("names engine/engine.cpp twice")


if __name__ == "__main__":
    unittest.main()
