# SPDX-License-Identifier: Apache-2.0
"""The first import of examples/wheel_package, on a machine that test_wheel_recipe.py prepares. Prints what it found as JSON.

    first_import.py ready             waits for every unit of the package
    first_import.py missing           gets a kernel that the bundle does not have for this device
"""

import time

start = time.perf_counter()  # before all imports: what they cost is part of the figure
processor_start = time.process_time()

import acme_vision  # noqa: E402
import kiln  # noqa: E402

imported = time.perf_counter()
kiln.shared.make_current("cuda")  # as the program does that calls the package


def milliseconds(since: float) -> float:
    return (time.perf_counter() - since) * 1000


def wait_for_all() -> None:
    end = time.monotonic() + 60
    while kiln.status().pending and time.monotonic() < end:
        time.sleep(0.0005)


def mapped_compilers() -> list[str]:
    with open("/proc/self/maps") as maps:
        return sorted({line.split("/")[-1].strip() for line in maps if "libnvrtc" in line or "libnvJitLink" in line})


def works(compiler: str) -> bool:
    """Returns whether a library can be opened or a program can be run."""
    import ctypes
    import subprocess

    try:
        if compiler.startswith("lib"):
            ctypes.CDLL(compiler)
        else:
            subprocess.run([compiler, "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def ready(report: dict[str, object]) -> None:
    kernel = kiln.get(acme_vision.UNITS["blur.cu"], "blur<float>", timeout=60)
    report["first_kernel_ms"] = milliseconds(start)
    report["processor_ms"] = (time.process_time() - processor_start) * 1000
    target = kiln.shared.devices("cuda")[0].target
    report["artifacts"] = {
        name: [str(artifact.target), artifact.compiler]
        for name, unit in acme_vision.UNITS.items()
        for artifact in [kiln.artifact(unit, target, timeout=60)]
    }
    report["all_ms"] = milliseconds(start)
    stream = kiln.shared.stream("cuda")
    image, out = stream.allocate(64 * 64 * 4), stream.allocate(64 * 64 * 4)
    kernel.launch(image, out, 64, 64, grid=(4, 4), block=(16, 16), stream=stream)
    stream.synchronize()


def missing(report: dict[str, object]) -> None:
    try:
        kiln.get(acme_vision.UNITS["blur.cu"], "blur<float>", timeout=60)
    except kiln.Error as error:
        report["error"] = [type(error).__name__, error.message]


def main() -> None:
    import sys

    report: dict[str, object] = {"import_ms": (imported - start) * 1000}
    {"ready": ready, "missing": missing}[sys.argv[1]](report)
    wait_for_all()
    report["units"] = [[unit.unit, unit.state, unit.origin, unit.error] for unit in kiln.status().units]
    report["compiled"] = kiln.status().compiled
    report["mapped_compilers"] = mapped_compilers()
    # Last: a successful attempt would map the library.
    report["compilers"] = [name for name in ("libnvrtc.so.13", "libnvrtc.so", "libcccl.c.parallel.so", "nvcc") if works(name)]
    import json  # here, because it takes longer than all that is measured

    print(json.dumps(report))


main()
