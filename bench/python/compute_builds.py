# SPDX-License-Identifier: Apache-2.0
"""Measures how long a new process waits for cuda.compute, alone and with kiln, cold and warm:
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


LIMITS = {"used host": 1.05, "new host": 1.1}
KINDS = {"unit": "arrays: a unit, compiled by a worker", "target": "an iterator with code: compiled in the process"}


def start(folder, *arguments, host="", trace=""):
    environment = dict(os.environ, KILN_CACHE_DIR=folder, KILN_FAKE_DRIVER_DEVICES="sm_90", CUDA_CACHE_PATH=f"{folder}.nvidia")
    environment["LD_LIBRARY_PATH"] = f"{sys.argv[1]}:{TOOLKIT}"
    if host:  # where kiln keeps what it knows about a host
        os.makedirs(f"{host}/runtime", 0o700, exist_ok=True)
        environment.update(HOME=host, XDG_RUNTIME_DIR=f"{host}/runtime")
    if trace:
        environment["KILN_TRACE"] = trace
    program = [sys.executable, str(BUILDS), *arguments]
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    return answer_of(process)["builds"]


def answer_of(process):
    output, errors = process.communicate(timeout=600)
    if process.returncode != 0:
        raise SystemExit(errors)
    return json.loads(output.splitlines()[-1])


def parts_of(trace, answer):
    """Returns the times of the parts of a cold build in order, from the events of the session."""
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    events = [event for event in events if event.get("cat") in ("miss", "compiled", "published", "build_served", "build_missed")]
    begin = min(event["ts"] for event in events)
    asked = next(event["ts"] for event in events if event["cat"] == "miss")
    compiled = next((event for event in events if event["cat"] == "compiled"), None)
    whole = answer["builds"][0]["ms"]
    lookup = answer["digest_ms"] + (asked - begin) / 1e3
    parts = {"import kiln": answer["import_ms"], "digests, lookup": lookup}
    if compiled:
        end = (compiled["ts"] + compiled["dur"] - begin) / 1e3
        parts |= {"worker ready": (compiled["ts"] - asked) / 1e3, "compile": compiled["dur"] / 1e3, "store, load": whole - end}
    else:
        parts["compile, store"] = whole - lookup
    return parts


def cold_builds(scratch, kind, rounds):
    """Compares a build with nothing in the cache, on a host that has built before and on a new one."""
    alone, ours, parts = [], {name: [] for name in LIMITS}, {name: [] for name in LIMITS}
    finish(start(f"{scratch}/first-{kind}", kind, host=f"{scratch}/used-{kind}"))
    for i in range(rounds):
        alone.append(finish(start(f"{scratch}/alone-{kind}-{i}", kind, "plain"))[0]["ms"])
        for place in LIMITS:
            host = f"{scratch}/used-{kind}" if place == "used host" else f"{scratch}/new-{kind}-{i}"
            folder = f"{scratch}/{place[:3]}-cache-{kind}-{i}"
            answer = answer_of(start(folder, kind, host=host, trace=f"{folder}.json"))
            ours[place].append(answer["builds"][0]["ms"])
            parts[place].append(parts_of(f"{folder}.json", answer))
    print(f"A cold build in a new process, {KINDS[kind]}; {rounds} rounds, the sides interleaved")
    show("cuda.compute alone", alone)
    for place, limit in LIMITS.items():
        row = "cold" if place == "used host" else "cold_new_host"
        name = f"python_compute_{row}" + ("" if kind == "unit" else "_iterator")
        what = "a transform of " + ("arrays" if kind == "unit" else "an iterator")
        ratio, spread = figures.figure(name, row, PEER, f"{what}, with kiln.compute", ours[place], alone, "ms", limit)
        show(f"kiln.compute, {place}", ours[place])
        print(f"    {ratio:.3f} ± {spread:.3f} times as long; limit {limit}")
        medians = {name: statistics.median(part[name] for part in parts[place]) for name in parts[place][0]}
        print("    " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in medians.items()))


def show(what, times):
    print(f"  {what:28} {statistics.median(times):9.1f} ms ({min(times):.1f} to {max(times):.1f})")


if __name__ == "__main__":
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as scratch:
        for kind in KINDS:
            cold_builds(scratch, kind, rounds if rounds < 3 else 2 * rounds + 1)
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
