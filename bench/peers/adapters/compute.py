# SPDX-License-Identifier: Apache-2.0
"""cuda.compute, NVIDIA's algorithms for Python, alone or with kiln under it: compute.py DRIVER alone|kiln …

It builds and serializes a transform that negates integers; SOURCE holds its name. DRIVER is a libcuda.so.1, which must exist for
the build: the fake driver of the tests is enough.
"""

import time

STARTED = time.monotonic_ns()

import ctypes  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
from importlib.metadata import version  # noqa: E402
from typing import Any, Callable, Optional  # noqa: E402

from adapter import Question, ask, not_here  # noqa: E402

try:
    ctypes.CDLL(sys.argv.pop(1), ctypes.RTLD_GLOBAL)
    # Uses the compiler of the toolkit, whose linker supports its output; the linker rejects code of a newer compiler in
    # the environment.
    ctypes.CDLL("libnvrtc.so.13", ctypes.RTLD_GLOBAL)
    warnings.filterwarnings("ignore")
    import cuda.compute
    import numpy
    from cuda.compute import _cccl_interop as interop

    import kiln.compute
except (ImportError, OSError) as error:
    not_here(error)


class Compute:
    """Counts calls of the library's build functions, and kiln's compiles of units, as compiles."""

    def __init__(self, with_kiln: bool) -> None:
        self._builds = 0
        self._with_kiln = with_kiln
        self._ready = False

    @property
    def compiles(self) -> Optional[int]:
        return self._builds + (kiln.status().compiled if self._with_kiln else 0)

    def get(self, asked: Question) -> bytes:
        if not self._ready:
            self._begin(asked)
        array = cuda.compute.ProxyArray(numpy.int32)
        capability = int(asked.arch.removeprefix("sm_"))
        built = cuda.compute.make_unary_transform(
            d_in=array, d_out=array, op=cuda.compute.OpKind.NEGATE, compute_capability=capability
        )
        return bytes(cuda.compute.serialize(built))

    def _begin(self, asked: Question) -> None:
        interop.call_build = self._counted(interop.call_build)
        interop.call_compile = self._counted(interop.call_compile)
        if self._with_kiln:
            # Uses the shared session, which is configured by variables.
            os.environ["KILN_CACHE_DIR"] = asked.cache
            if not kiln.compute.install():
                raise RuntimeError("kiln does not support this release of cuda.compute")
        self._ready = True

    def _counted(self, build: Callable[..., Any]) -> Callable[..., Any]:
        def builder(*words: Any, **named: Any) -> Any:
            self._builds += 1
            return build(*words, **named)

        return builder


if __name__ == "__main__":
    ask(Compute(sys.argv.pop(1) == "kiln"), version("cuda-cccl"), STARTED)
