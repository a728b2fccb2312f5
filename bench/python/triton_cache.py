"""Triton's own cache and kiln's under it, side by side: python bench/python/triton_cache.py [rounds]

Needs the packages `triton` and `kiln`. Compiles for sm_90 and needs no GPU; nothing is executed. The sides take turns,
so that what else the machine does meets them alike.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

KERNELS = pathlib.Path(__file__).parents[2] / "tests" / "bindings" / "python" / "adapters" / "triton_kernels.py"
MANAGER = {"TRITON_CACHE_MANAGER": "kiln.triton:CacheManager"}
SIDES = {"Triton alone": ({}, []), "kiln, by variable": (MANAGER, []), "kiln, install()": ({}, ["install"])}


def start(folder, side):
    variables, arguments = SIDES[side]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "KILN_"))}
    environment |= {"TRITON_CACHE_DIR": f"{folder}/triton", "KILN_CACHE_DIR": f"{folder}/kiln", **variables}
    program = [sys.executable, str(KERNELS), *arguments]
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    """What it printed; None where it failed."""
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
    for what, title in (("first", "the first triton.compile, kiln's import in it"), ("hit", "of it, from the key to the kernel")):
        base = statistics.median(times["Triton alone"][what])
        for side in SIDES:
            taken = sorted(times[side][what])
            median = statistics.median(taken)
            print(
                f"  {title:43} {side:18} {median:8.2f} ms ({taken[0]:.2f} to {taken[-1]:.2f}), "
                f"{median / base:.2f} of Triton's"
            )


def cold_storm(scratch):
    print("Eight processes on a cold key")
    for index, side in enumerate(SIDES):
        processes = [start(f"{scratch}/storm {index}", side) for _ in range(8)]
        answers = [finish(process) for process in processes]
        print(f"  {side:18} {sum(answer['compiles'] for answer in answers)} compiles")


def hurt(folder, side, damage, whole):
    """Damages the cubin where the cache keeps it."""
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
        for index, side in enumerate(SIDES):
            folder = f"{scratch}/{damage} {index}"
            whole = bytes.fromhex(run(folder, side)["cubin"])
            hurt(folder, side, damage, whole)
            answer = run(folder, side)
            if answer is None:
                outcome = "error"
            elif bytes.fromhex(answer["cubin"]) == whole:
                outcome = f"healed ({answer['compiles']} compile)"
            else:
                outcome = "served as it was"
            print(f"  {side:18} {outcome}")


def unwritable(scratch):
    print("A folder that cannot be written")
    pathlib.Path(f"{scratch}/file").write_text("no folder")
    for side in SIDES:
        print(f"  {side:18} {'error' if run(f'{scratch}/file', side) is None else 'works'}")


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as scratch:
        warm_hits(scratch, rounds)
        cold_storm(scratch)
        damaged(scratch)
        unwritable(scratch)
