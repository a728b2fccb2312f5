# SPDX-License-Identifier: Apache-2.0
"""Compares Triton's own cache with kiln's: python bench/python/triton_cache.py [rounds] [--json]

Needs the packages `triton` and `kiln`. Compiles for sm_90 and needs no GPU; nothing is executed. The sides alternate,
so that other load affects them equally.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import figures

KERNELS = pathlib.Path(__file__).parents[2] / "tests" / "bindings" / "python" / "adapters" / "triton_kernels.py"
MANAGER = {"TRITON_CACHE_MANAGER": "kiln.triton:CacheManager"}
SIDES = {"Triton alone": ({}, []), "kiln, install()": ({}, ["install"]), "kiln, by variable": (MANAGER, [])}
NAMES = {"kiln, install()": "install", "kiln, by variable": "variable"}
SHORT = {"first": "first compile", "hit": "key to kernel"}
PEER = f"Triton {figures.version('triton')}"


def start(folder, side):
    variables, arguments = SIDES[side]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "KILN_"))}
    environment |= {"TRITON_CACHE_DIR": f"{folder}/triton", "KILN_CACHE_DIR": f"{folder}/kiln", **variables}
    program = [sys.executable, str(KERNELS), *arguments]
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    """Returns the output; None if the process failed."""
    output, _ = process.communicate(timeout=300)
    return json.loads(output) if process.returncode == 0 else None


def run(folder, side):
    return finish(start(folder, side))


def warm_hits(scratch, rounds):
    print(f"A warm hit in a new process, {rounds} rounds, the sides interleaved")
    times = {side: {"first": [], "hit": []} for side in SIDES}
    folders = {side: f"{scratch}/warm {index}" for index, side in enumerate(SIDES)}
    for side, folder in folders.items():
        assert run(folder, side)["compiles"] == 1
    for _ in range(rounds):
        for side, folder in folders.items():
            answer = run(folder, side)
            assert answer["compiles"] == 0
            times[side]["first"].append(answer["install_ms"] + answer["ms"])
            times[side]["hit"].append(answer["hit_ms"])
    for what, title in (("first", "the first triton.compile, with kiln's import"), ("hit", "from the key to the kernel")):
        base = statistics.median(times["Triton alone"][what])
        for side in SIDES:
            taken = sorted(times[side][what])
            median = statistics.median(taken)
            print(
                f"  {title:43} {side:18} {median:8.2f} ms ({taken[0]:.2f} to {taken[-1]:.2f}), "
                f"{median / base:.2f} of Triton's"
            )
            if side in NAMES:
                # The README uses the short name for the recommended variant.
                name = f"python_triton_{what}" + ("" if NAMES[side] == "install" else "_variable")
                alone = times["Triton alone"][what]
                figures.figure(name, "warm_new_process", PEER, f"{SHORT[what]}, {side.removeprefix('kiln, ')}", times[side][what], alone, "ms")


def cold_storm(scratch):
    print("Eight processes on a cold key")
    counts = {}
    for index, side in enumerate(SIDES):
        processes = [start(f"{scratch}/storm {index}", side) for _ in range(8)]
        counts[side] = sum(finish(process)["compiles"] for process in processes)
        print(f"  {side:18} {counts[side]} compiles")
    alone = counts["Triton alone"]
    for side, name in NAMES.items():
        add_row(name, "eight", "eight_cold", side, figures.compiles(counts[side]), figures.compiles(alone), (counts[side] == 1, alone == 1),
             "test_triton.py: test_eight_processes_compile_missing_key_once")  # fmt: skip


def add_row(side, name, row, what, ours, theirs, good, test):
    suffix = "" if side == "install" else "_variable"
    figures.behavior(f"python_triton_{name}{suffix}", row, PEER, what, ours, theirs, good, test)


def hurt(folder, side, damage, whole):
    """Corrupts the cubin in the files of the cache."""
    under = pathlib.Path(folder) / ("triton" if side == "Triton alone" else "kiln")
    for path in under.rglob("*"):
        if not path.is_file():
            continue
        data = bytearray(path.read_bytes())
        at = data.find(whole)
        if at < 0:
            continue
        if damage == "truncated":
            del data[at + len(whole) // 2 :]
        else:
            data[at + len(whole) // 2] ^= 1
        path.write_bytes(data)


def damaged(scratch):
    for damage in ("truncated", "flipped"):
        print(f"An entry that was {damage}")
        outcomes = {}
        for index, side in enumerate(SIDES):
            folder = f"{scratch}/{damage} {index}"
            whole = bytes.fromhex(run(folder, side)["cubin"])
            hurt(folder, side, damage, whole)
            answer = run(folder, side)
            if answer is None:
                outcome = "error"
            elif bytes.fromhex(answer["cubin"]) == whole:
                outcome = f"repaired ({answer['compiles']} compile)"
            else:
                outcome = "corrupt code served"
            print(f"  {side:18} {outcome}")
            outcomes[side] = outcome
        alone = outcomes["Triton alone"]
        for side, name in NAMES.items():
            good = (outcomes[side].startswith("repaired"), alone.startswith("repaired"))
            add_row(name, damage, "corrupt_entry", f"{damage}; {side}", outcomes[side], alone, good,
                 "test_triton.py: test_corrupt_entry_is_not_served")  # fmt: skip


def unwritable(scratch):
    print("A cache directory that cannot be written")
    pathlib.Path(f"{scratch}/file").write_text("not a directory")
    outcomes = {side: "error" if run(f"{scratch}/file", side) is None else "works" for side in SIDES}
    for side, outcome in outcomes.items():
        print(f"  {side:18} {outcome}")
    alone = outcomes["Triton alone"]
    for side, name in NAMES.items():
        add_row(name, "unwritable", "unwritable", f"a file in place of the directory; {side}", outcomes[side], alone,
             (outcomes[side] == "works", alone == "works"),
             "test_triton.py: test_unwritable_directory_costs_only_compiles")  # fmt: skip


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as scratch:
        warm_hits(scratch, rounds)
        cold_storm(scratch)
        damaged(scratch)
        unwritable(scratch)
