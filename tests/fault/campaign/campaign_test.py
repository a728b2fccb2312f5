#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the fault campaign detects violations: each test plants one in a shell script that replaces kiln.

    campaign_test.py PROGRAMS       the directory of fault_inject, fault_steps and kiln
"""
import pathlib
import sys
import tempfile
import unittest

import faults
from invariant import Trial
from operations import Operation, Programs, empty

PROGRAMS = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/bin").resolve()
OPEN = faults.Fault(0, "openat", 1, "EIO")


class Planted(unittest.TestCase):
    def problems(self, script, fault=OPEN, **more):
        """Returns the problems that the campaign finds in a script. A correct script reads and prints the header."""
        operation = Operation("planted", "", ["sh", "-c", script], empty, **more)
        programs = Programs(PROGRAMS / "kiln", PROGRAMS / "fault_steps", PROGRAMS / "fault_inject")
        with tempfile.TemporaryDirectory() as scratch:
            trial = Trial(operation, programs, scratch + "/template", scratch + "/slot")
            trial.outlive = 1
            empty(trial.template)
            outcome = trial.run(trial.learn(), fault)
        self.assertEqual(outcome.met, 1)
        return " ".join(outcome.problems)

    def test_accepts_clear_error(self):
        self.assertEqual(self.problems("read -r line <include/k.h || exit 1; echo $line", output="-"), "")

    def test_detects_wrong_code(self):
        self.assertIn("wrong", self.problems("read -r line 2>/dev/null <include/k.h; echo $line", output="-"))

    def test_detects_wrong_code_in_next_process(self):
        script = "read -r line <include/k.h || echo poison >../cache/k; test -e ../cache/k && exec cat ../cache/k; echo $line"
        self.assertIn("the next process got wrong code", self.problems(script, output="-"))

    def test_detects_error_without_message(self):
        second = faults.Fault(0, "openat", 2, "EIO")
        self.assertIn("without a message", self.problems("exec 2>/dev/null; read -r line <include/k.h || exit 1", second))

    def test_detects_crash(self):
        self.assertIn("returned 139", self.problems("read -r line <include/k.h || kill -SEGV $$"))

    def test_detects_leftover_file(self):
        script = "echo $$ >../cache/tmp.$$; mv ../cache/tmp.$$ ../cache/k"
        self.assertIn("left behind: cache/tmp.", self.problems(script, faults.Fault(0, "openat", 1, "kill")))

    def test_detects_leftover_process(self):
        self.assertIn("outlived", self.problems("read -r line <include/k.h || (sleep 9 >/dev/null 2>&1 &)"))


if __name__ == "__main__":
    unittest.main()
