#!/usr/bin/env python3
"""That the fault campaign sees what it is there to see: each test plants one violation, in a shell script in place of kiln.

    campaign_test.py PROGRAMS       the folder with fault_inject, fault_steps and kiln
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
        """What is found of a script that prints the header, by way of `read`, unless something is wrong with it."""
        operation = Operation("planted", "", ["sh", "-c", script], empty, **more)
        programs = Programs(PROGRAMS / "kiln", PROGRAMS / "fault_steps", PROGRAMS / "fault_inject")
        with tempfile.TemporaryDirectory() as scratch:
            trial = Trial(operation, programs, scratch + "/template", scratch + "/slot")
            trial.outlive = 1
            empty(trial.template)
            outcome = trial.run(trial.learn(), fault)
        self.assertEqual(outcome.met, 1)
        return " ".join(outcome.problems)

    def test_a_clear_error_is_no_problem(self):
        self.assertEqual(self.problems("read -r line <include/k.h || exit 1; echo $line", output="-"), "")

    def test_wrong_code_is_seen(self):
        self.assertIn("wrong", self.problems("read -r line 2>/dev/null <include/k.h; echo $line", output="-"))

    def test_wrong_code_in_the_next_process_is_seen(self):
        script = "read -r line <include/k.h || echo poison >../cache/k; test -e ../cache/k && exec cat ../cache/k; echo $line"
        self.assertIn("the next process got wrong code", self.problems(script, output="-"))

    def test_an_error_without_a_word_is_seen(self):
        second = faults.Fault(0, "openat", 2, "EIO")
        self.assertIn("without a word", self.problems("exec 2>/dev/null; read -r line <include/k.h || exit 1", second))

    def test_a_crash_is_seen(self):
        self.assertIn("returned 139", self.problems("read -r line <include/k.h || kill -SEGV $$"))

    def test_a_file_left_behind_is_seen(self):
        script = "echo $$ >../cache/tmp.$$; mv ../cache/tmp.$$ ../cache/k"
        self.assertIn("left behind: cache/tmp.", self.problems(script, faults.Fault(0, "openat", 1, "kill")))

    def test_a_process_left_behind_is_seen(self):
        self.assertIn("outlived", self.problems("read -r line <include/k.h || (sleep 9 >/dev/null 2>&1 &)"))


if __name__ == "__main__":
    unittest.main()
