# SPDX-License-Identifier: Apache-2.0
"""Imports a module that requests algorithms, calls each of them, and prints how it went as one JSON object:
python compute_warmup.py wait|now. With `wait` the program has something else to do until all are ready. It ends when
its standard input does, so that uploads can finish. A separate process, because the driver must be present at its
start."""

import ctypes
import json
import os
import sys
import threading
import time

# The toolkit's compiler, which its linker supports; a newer one in the environment produces code that it rejects.
ctypes.CDLL("libnvrtc.so.13", ctypes.RTLD_GLOBAL)

import kiln.compute  # noqa: E402

imported = time.perf_counter()
import spatial_join  # noqa: E402

requested = time.perf_counter()


def is_busy():
    names = {thread.name for thread in threading.enumerate()}
    return "kiln-compute" in names or kiln.status().pending > 0


if sys.argv[1] == "wait":
    while is_busy():
        time.sleep(0.05)
ready = time.perf_counter()

import compute_algorithms  # noqa: E402
from cuda.core import Device  # noqa: E402

Device(0).set_current()
kiln.compute.install()
numba_ms = []
compiles_of_numba = 0


def compiles():
    """Returns how many compiles and links this thread, the main one, has run."""
    path = os.environ["KILN_TEST_COMPILES"]
    lines = open(path).read().splitlines() if os.path.exists(path) else []
    return sum(line.endswith(f" {os.getpid()} {os.getpid()}") for line in lines)


def timed(call, *arguments):
    start = time.perf_counter()
    result = call(*arguments)
    return round((time.perf_counter() - start) * 1e3, 2), result


def timed_operator(*arguments):
    global compiles_of_numba
    if threading.current_thread() is not threading.main_thread():
        return compile_operator(*arguments)
    before = compiles()
    ms, operator = timed(compile_operator, *arguments)
    numba_ms.append(ms)
    compiles_of_numba += compiles() - before
    return operator


if spatial_join.SELECTS:
    from cuda.compute import _jit  # first, as on the background thread: Python's locks of imports then order the two

    import numba_cuda_mlir.tools

    # Otherwise numba opens the device, and fails without an id of it, which the driver's double does not have.
    numba_cuda_mlir.tools._cached_cc = Device(0).compute_capability
    compile_operator, _jit.compile_op = _jit.compile_op, timed_operator
names = [*spatial_join.NEEDS, *(build.__name__ for build in spatial_join.SELECTS)]
calls = {name: timed(compute_algorithms.make, name)[0] for name in names}
kiln.shared.write_trace()
status = kiln.status()
answer = {
    "process": os.getpid(),
    "request_ms": round((requested - imported) * 1e3, 2),
    "ready_ms": round((ready - requested) * 1e3),
    "calls": calls,
    "numba_ms": numba_ms,
    "compiles": compiles() - compiles_of_numba,
    "compiled": status.compiled,
    "cached": status.cached,
    "failed": [unit.error for unit in status.units if unit.state == "failed"],
}
print(json.dumps(answer), flush=True)
sys.stdin.read()
