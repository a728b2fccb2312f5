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

import kiln.compute  # noqa: E402

compiles = []


def counted(build):
    def builder(*args, **kwargs):
        compiles.append(1)
        return build(*args, **kwargs)

    return builder


def negate(**target):
    """Builds a transform from an iterator with code of its own, which no spec describes, to an array."""
    cuda.compute.clear_all_caches()
    ones = cuda.compute.ConstantIterator(numpy.int32(1))
    array = cuda.compute.ProxyArray(numpy.int32)
    return cuda.compute.make_unary_transform(d_in=ones, d_out=array, op=cuda.compute.OpKind.NEGATE, **target)


def build(kind):
    if kind != "device":
        return negate(compute_capability=90)
    from cuda.core import Device

    Device(0).set_current()
    return negate()


if __name__ == "__main__":
    interop.call_build = counted(interop.call_build)
    interop.call_compile = counted(interop.call_compile)
    installed = "plain" not in sys.argv and kiln.compute.install()
    answers = []
    for kind in sys.argv[1].split(","):
        begin = time.perf_counter()
        algorithm = build(kind)
        ms = (time.perf_counter() - begin) * 1e3
        digest = hashlib.sha256(cuda.compute.serialize(algorithm)).hexdigest()
        answers.append({"compiles": len(compiles), "ms": ms, "digest": digest})
        compiles.clear()
    print(json.dumps({"installed": bool(installed), "builds": answers}))
