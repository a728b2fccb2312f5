#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the cost of a launch from Python, whose arguments are checked, and of the end of a session, which appends to the
activity log, between two builds.

    bench/python/first_hour_costs.py BEFORE AFTER [ROUNDS]     build directories with python/; AFTER has the fake driver

The builds run in turn, and the first one alternates. A ratio compares the two values of one round. CUDA launches go to the fake driver,
OpenCL launches to PoCL; their time is the CPU time of the calling thread.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Literal

CUDA = "__global__ void saxpy(float a, const float* x, float* y, unsigned n) { if (threadIdx.x < n) y[threadIdx.x] += a * x[threadIdx.x]; }"
OPENCL = "kernel void saxpy(float a, global const float* x, global float* y, uint n) { if (get_global_id(0) < n) y[get_global_id(0)] += a; }"
LAUNCHES = {"cuda": 20_000, "opencl": 3_000}
FIGURES = {
    "cuda": ["CUDA launch", "CUDA get and launch", "CUDA launch, numpy scalars"],
    "opencl": ["OpenCL launch", "OpenCL get and launch", "OpenCL launch, numpy scalars"],
    "end": ["hit in a new process", "end of its session"],
}


def end_of_session() -> Iterator[list[float]]:
    """Yields the time of a hit and of the end of the session, once: a process has one."""
    import kiln

    unit = kiln.Unit.cuda("end.cu", CUDA, entries="saxpy")
    session = kiln.Session()
    start = time.perf_counter()
    session.artifact(unit, "sm_80")
    hit = time.perf_counter()
    del session
    yield [(hit - start) * 1e6, (time.perf_counter() - hit) * 1e6]


def launches(backend: Literal["cuda", "opencl"]) -> Iterator[list[float]]:
    """Yields the microseconds of a launch, in the ways of FIGURES, again and again."""
    import kiln
    import numpy

    session = kiln.Session({"driver": os.environ["DRIVER"]} if backend == "cuda" else {})
    if backend == "cuda":
        session.make_current("cuda")
    make = kiln.Unit.cuda if backend == "cuda" else kiln.Unit.opencl
    unit = make("saxpy", CUDA if backend == "cuda" else OPENCL, entries="saxpy")
    stream = session.stream(backend)
    kernel = session.get(unit)
    x, y = (stream.copy_of(numpy.ones(64, numpy.float32)) for _ in range(2))
    factor, count = numpy.float32(2), numpy.uint32(64)
    ways: list[Callable[[], None]] = [
        lambda: kernel.launch(2.0, x, y, 64, grid=1, block=64, stream=stream),
        lambda: session.get(unit).launch(2.0, x, y, 64, grid=1, block=64, stream=stream),
        lambda: kernel.launch(factor, x, y, count, grid=1, block=64, stream=stream),
    ]
    while True:
        figures = []
        for launch in ways:
            start = time.thread_time()
            for _ in range(LAUNCHES[backend]):
                launch()
            figures.append((time.thread_time() - start) / LAUNCHES[backend] * 1e6)
            stream.synchronize()
        yield figures


def measure(what: str) -> None:
    """Prints a line of figures for each line of standard input."""
    figures = end_of_session() if what == "end" else launches("cuda" if what == "cuda" else "opencl")
    for _ in sys.stdin:
        print(*next(figures), flush=True)


class Build:
    """A build with its own cache. Runs a measurement in a process that lives as long as it can."""

    def __init__(self, build: str, cache: pathlib.Path, driver: pathlib.Path) -> None:
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(cache), "PYTHONPATH": f"{build}/python", "DRIVER": str(driver)}
        self._running: dict[str, subprocess.Popen[str]] = {}

    def measure(self, what: str) -> list[float]:
        if what == "end" or what not in self._running:
            command = [sys.executable, "-B", __file__, "--measure", what]
            self._running[what] = subprocess.Popen(
                command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        process = self._running[what]
        assert process.stdin and process.stdout
        process.stdin.write("\n")
        process.stdin.flush()
        figures = [float(text) for text in process.stdout.readline().split()]
        if what == "end":
            process.stdin.close()
            process.wait()
        return figures


def compare(builds: list[Build], what: str, rounds: int) -> None:
    for build in builds:
        build.measure(what)  # compiles and warms up
    results: list[list[list[float]]] = [[], []]
    for each in range(rounds):
        for i in (0, 1) if each % 2 == 0 else (1, 0):
            results[i].append(builds[i].measure(what))
    for i, name in enumerate(FIGURES[what]):
        before, after = ([figures[i] for figures in result] for result in results)
        low, middle, high = statistics.quantiles((b / a for a, b in zip(before, after, strict=True)), n=4)
        print(f"{name:<30}{statistics.median(before):>9.1f}{statistics.median(after):>9.1f}{middle:>7.2f}   {low:.2f} to {high:.2f}")


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        return measure(sys.argv[2])
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 21
    with tempfile.TemporaryDirectory() as folder:
        driver = pathlib.Path(sys.argv[2], "lib", "fake_driver", "libcuda.so.1").resolve()
        builds = []
        for name, build in zip(("before", "after"), sys.argv[1:3], strict=True):
            pathlib.Path(folder, name).mkdir()
            builds.append(Build(os.path.abspath(build), pathlib.Path(folder, name), driver))
        print(f"{'microseconds, median':<30}{'before':>9}{'after':>9}  ratio   quartiles of the ratios; {rounds} rounds")
        for what in FIGURES:
            compare(builds, what, rounds * 5 if what == "end" else rounds)


if __name__ == "__main__":
    main()
