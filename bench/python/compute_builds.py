"""Measures how long a new process waits for cuda.compute, alone and with kiln:
python bench/python/compute_builds.py FAKE_DRIVER [rounds] [--json]

Needs the packages `cuda-cccl`, `cuda-core` and `kiln`, and a CUDA toolkit. Builds for sm_90 and needs no GPU:
FAKE_DRIVER is the directory of the fake libcuda.so.1 of the tests; nothing is executed. The sides alternate.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import figures

BUILDS = pathlib.Path(__file__).parents[2] / "tests" / "bindings" / "python" / "adapters" / "compute_builds.py"
TOOLKIT = "/usr/local/cuda/lib64"
PEER = f"cuda.compute {figures.version('cuda-cccl')}"


def start(folder, *arguments):
    environment = dict(os.environ, KILN_CACHE_DIR=folder, KILN_FAKE_DRIVER_DEVICES="sm_90")
    environment["LD_LIBRARY_PATH"] = f"{sys.argv[1]}:{TOOLKIT}"
    program = [sys.executable, str(BUILDS), *arguments]
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    output, errors = process.communicate(timeout=600)
    if process.returncode != 0:
        raise SystemExit(errors)
    return json.loads(output.splitlines()[-1])["builds"]


def show(what, times):
    print(f"  {what:28} {statistics.median(times):9.1f} ms ({min(times):.1f} to {max(times):.1f})")


if __name__ == "__main__":
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as scratch:
        finish(start(f"{scratch}/warm", "target"))
        print(f"A transform in a new process, {rounds} rounds, the sides interleaved")
        alone, warm, both = [], [], []
        for _ in range(rounds):
            alone.append(finish(start(f"{scratch}/none", "target", "plain"))[0]["ms"])
            first, again = finish(start(f"{scratch}/warm", "target,target"))
            assert (first["compiles"], again["compiles"]) == (0, 0)
            warm.append(first["ms"])
            both.append(again["ms"])
        show("cuda.compute alone", alone)
        show("kiln, warm", warm)
        show("  the same again, one process", both)
        print(f"  {statistics.median(alone) / statistics.median(warm):.0f} times faster")
        figures.figure("python_compute_warm", "warm_new_process", PEER, "a transform, with kiln.compute", warm, alone, "ms")
        print("Four processes on a cold key")
        counts = []
        for side, folder, words in (("cuda.compute alone", "none", ["plain"]), ("kiln", "storm", [])):
            processes = [start(f"{scratch}/{folder}", "target", *words) for _ in range(4)]
            counts.append(sum(finish(process)[0]["compiles"] for process in processes))
            print(f"  {side:28} {counts[-1]} compiles")
        theirs, ours = counts
        figures.behavior("python_compute_four", "eight_cold", PEER, "four processes", figures.compiles(ours), figures.compiles(theirs),
                          (ours == 1, theirs == 1), "test_external_cache.py: test_miss_holds_claim_until_release")  # fmt: skip
