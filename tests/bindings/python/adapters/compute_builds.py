# SPDX-License-Identifier: Apache-2.0
"""Builds for the tests of kiln.compute, in a separate process because the driver must be present at its start."""

import ctypes
import hashlib
import json
import sys
import time
import warnings

# The toolkit's compiler, which its linker supports; a newer one in the environment produces code that it rejects.
ctypes.CDLL("libnvrtc.so.13", ctypes.RTLD_GLOBAL)
warnings.filterwarnings("ignore")

import cuda.compute  # noqa: E402
import numpy  # noqa: E402
from cuda.compute import _cccl_interop as interop  # noqa: E402

imported = time.perf_counter()
import kiln.compute  # noqa: E402

import_ms = (time.perf_counter() - imported) * 1e3

compiles = []
digest_ms = []  # times of the digest of the toolchain


def counted(build):
    def builder(*args, **kwargs):
        compiles.append(1)
        return build(*args, **kwargs)

    return builder


def timed(digest):
    def timer():
        begin = time.perf_counter()
        found = digest()
        digest_ms.append((time.perf_counter() - begin) * 1e3)
        return found

    return timer


def negate(source=None, **target):
    """Builds a transform to an array from `source`, or from an iterator with code of its own, which no spec describes."""
    cuda.compute.clear_all_caches()
    array = cuda.compute.ProxyArray(numpy.int32)
    source = source or cuda.compute.ConstantIterator(numpy.int32(1))
    return cuda.compute.make_unary_transform(d_in=source, d_out=array, op=cuda.compute.OpKind.NEGATE, **target)


def build(kind):
    if kind == "unit":
        return negate(cuda.compute.ProxyArray(numpy.int32), compute_capability=90)
    if kind != "device":
        return negate(compute_capability=90)
    from cuda.core import Device

    Device(0).set_current()
    return negate()


if __name__ == "__main__":
    interop.call_build = counted(interop.call_build)
    interop.call_compile = counted(interop.call_compile)
    kiln.compute._compiler_identity = timed(kiln.compute._compiler_identity)
    installed = "plain" not in sys.argv and kiln.compute.install()
    answers = []
    for kind in sys.argv[1].split(","):
        begin = time.perf_counter()
        algorithm = build(kind)
        ms = (time.perf_counter() - begin) * 1e3
        digest = hashlib.sha256(cuda.compute.serialize(algorithm)).hexdigest()
        answers.append({"compiles": len(compiles), "ms": ms, "digest": digest})
        compiles.clear()
    times = {"import_ms": import_ms, "digest_ms": sum(digest_ms)}
    print(json.dumps({"installed": bool(installed), "builds": answers, **times}))
