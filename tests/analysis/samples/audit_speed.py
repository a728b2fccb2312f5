#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures time and peak memory of `kiln audit` on a large trace of each format that it reads (docs/internals/long-tests.md).

    audit_speed.py KILN MEGABYTES
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import make_samples


def main():
    kiln, megabytes = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder)
        # In a process of its own: a process that is started from a large one inherits its peak.
        subprocess.run([sys.executable, "-B", make_samples.__file__, folder, "--megabytes", str(megabytes)], check=True)
        for name in ("large.kiln.json", "large.kineto.json", "large.nsight.sqlite"):
            path = directory / name
            size = path.stat().st_size
            start = time.monotonic()
            process = subprocess.Popen([kiln, "audit", str(path)], stdout=subprocess.PIPE, text=True)
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - start
            peak = usage.ru_maxrss * 1024
            findings = sum(line.split("  ")[0] in ("BLOCKING", "HIGH", "MEDIUM", "LOW") for line in output.splitlines())
            print(f"{name}: {size / 1e6:.0f} MB, exit code {os.waitstatus_to_exitcode(status)}, {findings} findings, "
                  f"{seconds:.1f} s ({usage.ru_utime + usage.ru_stime:.1f} s of processor time), "
                  f"peak memory {peak / 1e6:.0f} MB ({peak / size:.1f} times the file)", flush=True)


if __name__ == "__main__":
    main()
