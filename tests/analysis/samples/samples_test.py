#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Audits the samples of docs/internals/trace-format.md with the kiln program.

    samples_test.py KILN
"""
import ctypes.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import make_samples

KILN = sys.argv[1]
FORMATS = ("kineto.json", "nsight.sqlite")


class Samples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.directory = pathlib.Path(cls.folder.name)
        for sample in make_samples.SAMPLES:
            program = make_samples.Program()
            sample(program)
            make_samples.write_kineto(program, cls.directory / f"{sample.__name__}.kineto.json")
            make_samples.write_nsight(program, cls.directory / f"{sample.__name__}.nsight.sqlite")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def audit(self, name):
        ran = subprocess.run([KILN, "audit", "--json", str(self.directory / name)], capture_output=True, text=True)
        self.assertTrue(ran.stdout, ran.stderr)
        report = json.loads(ran.stdout)
        return ran.returncode, {(each["severity"], each["rule"]) for each in report["findings"]}, report

    def test_the_planted_program_is_blocking_with_and_without_a_range(self):
        for sample in ("planted", "planted_range"):
            for form in FORMATS:
                with self.subTest(sample=sample, form=form):
                    code, findings, report = self.audit(f"{sample}.{form}")
                    self.assertEqual(code, 13)
                    self.assertIn(("BLOCKING", "host_step"), findings)
                    self.assertIn(("HIGH", "many_tiny_launches"), findings)
                    self.assertIn(("MEDIUM", "allocation_in_loop"), findings)
                    step = next(each for each in report["findings"] if each["rule"] == "host_step")
                    self.assertEqual(step["operation"], "resample" if "range" in sample else "thread 1, default stream")
                    self.assertTrue(report["cause"] and report["change"])
                    self.assertIn(make_samples.DEVICE, report["devices"])

    def test_both_formats_have_the_same_findings(self):
        for sample in make_samples.SAMPLES:
            with self.subTest(sample=sample.__name__):
                code, findings, _ = self.audit(f"{sample.__name__}.kineto.json")
                self.assertEqual(self.audit(f"{sample.__name__}.nsight.sqlite")[:2], (code, findings))

    def test_the_repaired_program_is_clean(self):
        for sample in ("repaired", "repaired_range"):
            for form in FORMATS:
                with self.subTest(sample=sample, form=form):
                    self.assertEqual(self.audit(f"{sample}.{form}")[:2], (0, set()))

    def test_a_trace_without_evidence_is_inconclusive(self):
        for sample, missing in (("no_copies", "copies"), ("no_device", "kernels")):
            for form in FORMATS:
                with self.subTest(sample=sample, form=form):
                    code, findings, report = self.audit(f"{sample}.{form}")
                    self.assertEqual((code, findings), (14, set()))
                    self.assertIn(f"without {missing}", json.dumps(report))

    def test_device_usage_reads_them(self):
        ran = subprocess.run([KILN, "device-usage", str(self.directory / "planted_range.kineto.json"),
                              str(self.directory / "planted_range.nsight.sqlite")], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout, r"resample +2 +2 +0 ")

    def test_without_sqlite_the_error_names_the_package(self):
        (self.directory / "libsqlite3.so.0").write_text("this is no library")
        ran = subprocess.run([KILN, "audit", str(self.directory / "planted.nsight.sqlite")], capture_output=True, text=True,
                             env={**os.environ, "LD_LIBRARY_PATH": str(self.directory)})
        self.assertNotIn(ran.returncode, (0, 10, 11, 12, 13))
        self.assertIn("libsqlite3.so.0 cannot be opened", ran.stderr)
        self.assertIn("; install it", ran.stderr)
        ran = subprocess.run([KILN, "audit", str(self.directory / "planted.kineto.json")], capture_output=True, text=True,
                             env={**os.environ, "LD_LIBRARY_PATH": str(self.directory)})
        self.assertEqual(ran.returncode, 13, "the other formats do not need it")

    def test_the_report_of_compiles_rejects_them(self):
        ran = subprocess.run([KILN, "report", "-o", "-", str(self.directory / "planted.kineto.json")],
                             capture_output=True, text=True)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("use 'kiln audit'", ran.stderr)


if __name__ == "__main__":
    if ctypes.util.find_library("sqlite3") is None:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
