# SPDX-License-Identifier: Apache-2.0
"""Compiles a kernel with an installed wheel and prints the time from the import to its code."""
import time

start = time.monotonic()
import kiln  # noqa: E402  (the import is part of the time)

unit = kiln.Unit.cuda("scale.cu", 'extern "C" __global__ void scale(float* x) { *x *= 2; }', entries=["scale"])
artifact = kiln.Session().artifact(unit, "sm_80")
print(f"import to first compiled kernel: {time.monotonic() - start:.2f} s, {len(artifact.bytes)} bytes")
