# SPDX-License-Identifier: Apache-2.0
"""Gets a kernel with an installed wheel; prints the time from the import to its code, and its origin.

    wheel_first_kernel.py [ARCHITECTURE]
"""
import sys
import time

start = time.monotonic()
import kiln  # noqa: E402  (the import is part of the time)

unit = kiln.Unit.cuda("scale.cu", 'extern "C" __global__ void scale(float* x) { *x *= 2; }', entries=["scale"])
found = kiln.Session().resolve(unit, sys.argv[1] if len(sys.argv) > 1 else "sm_80")
print(f"import to first compiled kernel: {time.monotonic() - start:.2f} s, {len(found.artifact.bytes)} bytes, {found.origin}")
