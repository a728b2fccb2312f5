# SPDX-License-Identifier: Apache-2.0
"""The program of steps.cpp in Python, in the same three forms: faulty, repaired, idle."""

from __future__ import annotations

import array
import sys

import kiln

STEPS = 40
ITEMS = 1 << 20  # 4 MiB
UNIT = kiln.Unit.opencl(
    "steps.cl",
    """
    kernel void add_one(global float* x, uint items) {
      for (uint i = get_global_id(0); i < items; i += get_global_size(0)) x[i] += 1;
    }""",
    entries="add_one",
)


def faulty(stream: kiln.Stream, kernel: kiln.Kernel, x: array.array[float]) -> None:
    items = stream.copy_of(x)
    for _ in range(STEPS):
        scratch = stream.allocate(4 * len(x))
        kernel.launch(items, ITEMS, grid=1, block=64, stream=stream)
        stream.synchronize()
        stream.download(items, x)
        stream.upload(items, x)
        scratch.close()


@kiln.operation("test.steps", rows=lambda stream, kernel, x: len(x), residency="host")
def repaired(stream: kiln.Stream, kernel: kiln.Kernel, x: array.array[float]) -> None:
    block = kernel.occupancy().block_size
    with kiln.purpose("input"):
        items = stream.copy_of(x)
    for _ in range(STEPS):
        kernel.launch(items, ITEMS, grid=ITEMS // block, block=block, stream=stream)
    with kiln.purpose("materialize"):
        stream.download(items, x)


def main(form: str) -> None:
    if form == "idle":
        kiln.artifact(UNIT, kiln.shared.devices("opencl")[0].target, timeout=240)
        kiln.shared.write_trace()
        return
    stream = kiln.shared.stream("opencl")
    kernel = kiln.get(UNIT, timeout=240)
    x = array.array("f", [2]) * ITEMS
    {"faulty": faulty, "repaired": repaired}[form](stream, kernel, x)
    if x != array.array("f", [2 + STEPS]) * ITEMS:
        raise SystemExit("the items are wrong")
    print(f"{ITEMS} items are right")
    kiln.shared.write_trace()


main(sys.argv[1])
