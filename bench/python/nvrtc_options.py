#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how much compile time NVRTC's options --split-compile and --minimal save, in interleaved rounds.

    PYTHONPATH=build/release/python .venv/bin/python bench/python/nvrtc_options.py [ROUNDS]

Each line is the best and the median of the ratios of one option: compile time with it, divided by the time without it.
KILN_NVRTC selects the NVRTC."""

from __future__ import annotations

import itertools
import statistics
import sys

import kiln

KERNEL = """
extern "C" __global__ void k{0}(float* p, const float* q) {{
  float y = q[threadIdx.x];
#pragma unroll
  for (int i = 0; i < {1}; ++i) y = sinf(y) * cosf(q[i]) + sqrtf(fabsf(y) + i);
  p[threadIdx.x] = y;
}}
"""
SIX_KERNELS = "".join(KERNEL.format(i, 4 + i) for i in range(6))
NUMBERS = itertools.count()
ONE_KERNEL = 'extern "C" __global__ void k(int* p) { *p = 1; }\n'


def compile_ms(session: kiln.Session, source: str, *options: str) -> float:
    # The comment makes each unit a new one. `#include` keeps it in a worker, which stays the same for all rounds.
    unit = kiln.Unit.cuda("unit.cu", f"// #include {next(NUMBERS)}\n{source}", options=list(options))
    return session.artifact(unit, "sm_80", timeout=600).cost_ms


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    session = kiln.Session({"disable": True, "jobs": 1})
    for name, source, option in (("six kernels", SIX_KERNELS, "--split-compile=0"), ("one small kernel", ONE_KERNEL, "--minimal")):
        compile_ms(session, source)
        pairs = [(compile_ms(session, source), compile_ms(session, source, option)) for _ in range(rounds)]
        best = min(after for _, after in pairs) / min(before for before, _ in pairs)
        middle = statistics.median(after / before for before, after in pairs)
        print(f"{option}, {name}: x {best:.2f} by the best of {rounds} rounds, x {middle:.2f} by the median")


if __name__ == "__main__":
    main()
