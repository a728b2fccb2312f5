#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Audits the three forms of one program, in C++ or in Python, on PoCL, which really executes: `faulty` has BLOCKING and HIGH
findings, `repaired` is clean, and `idle` is inconclusive. Prints the findings, the exit codes and the two final answers.

    audit_test.py KILN PROGRAM [ARGUMENT…]
"""

from __future__ import annotations

import glob
import os
import pathlib
import subprocess
import sys
import tempfile

QUESTIONS = ("What makes this path behave like CPU code?", "What is the smallest structural change that moves it back?")


def audit(kiln: str, program: list[str], form: str, folder: pathlib.Path) -> tuple[int, str]:
    """Runs the program twice, so that the second run waits for no compiler, and audits the second."""
    trace = folder / f"{form}.json"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_") or name == "KILN_NVRTC"}
    for settings in ({}, {"KILN_TRACE": str(trace)}):
        environment = {**clean, "KILN_CACHE_DIR": str(folder / "cache"), **settings}
        subprocess.run([*program, form], env=environment, check=True, timeout=300, stdout=subprocess.DEVNULL)
    done = subprocess.run([kiln, "audit", str(trace)], env=clean, capture_output=True, text=True, timeout=120)
    if done.returncode not in (0, 10, 11, 12, 13, 14):
        sys.exit(f"kiln audit failed with {done.returncode}: {done.stderr}")
    return done.returncode, done.stdout


def show(form: str, code: int, text: str) -> list[str]:
    """Prints what the audit says of a program. Returns its BLOCKING and HIGH findings, each as severity and rule."""
    lines = text.splitlines()
    worst = [line for line in lines if line.startswith(("BLOCKING ", "HIGH "))]
    print(f"{form}: exit code {code}")
    for line in worst:
        print(f"  {line}")
    for line in lines:
        if line.startswith(("clean", "inconclusive", "missing: ")):
            print(f"  {line}")
    for question in QUESTIONS:
        if question in lines:
            at = lines.index(question)
            print(f"  {question}\n  {lines[at + 1]}")
    print()
    return [" ".join(line.split()[:2]) for line in worst]


def main(kiln: str, *program: str) -> None:
    if not glob.glob("/etc/OpenCL/vendors/*.icd"):
        print("skipped: there is no OpenCL driver here (no file in /etc/OpenCL/vendors)")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="kiln-audit-") as scratch:
        found = {form: audit(kiln, list(program), form, pathlib.Path(scratch)) for form in ("faulty", "repaired", "idle")}
    worst = {form: show(form, *each) for form, each in found.items()}
    codes = {form: code for form, (code, _) in found.items()}
    assert codes == {"faulty": 13, "repaired": 0, "idle": 14}, codes
    for finding in ("BLOCKING host_step", "HIGH sync_per_item", "HIGH many_tiny_launches"):
        assert finding in worst["faulty"], f"{finding} is missing"
    assert worst["repaired"] == [] and "clean" in found["repaired"][1]
    assert "inconclusive" in found["idle"][1] and "missing: " in found["idle"][1]
    for form in ("faulty", "repaired"):
        assert all(question in found[form][1] for question in QUESTIONS), form


main(*sys.argv[1:])
