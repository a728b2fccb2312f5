# SPDX-License-Identifier: Apache-2.0
"""kiln under CuPy: entries that are verified when read, one compile per host or fleet, and bundles.

:func:`install` enables it. CuPy's key covers the source, the options, the architecture, the build of NVRTC and CuPy's
own headers, but no header that a kernel includes from another directory.
"""

from __future__ import annotations

import re
import sys

import cupy
from cupy.cuda import compiler
from cupy.cuda._compiler_cache import KernelCacheBackend

from kiln import _external

__all__ = ["Backend", "install"]

_KERNEL = re.compile(r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(\w+)\s*\(")


class Backend(KernelCacheBackend):  # type: ignore[misc, unused-ignore]
    """A kernel cache backend for CuPy that is backed by kiln. Thread-safe."""

    #: Seconds to wait for another process that compiles the same kernel, before compiling it as well.
    wait_timeout = 30.0

    def __init__(self) -> None:
        self._cache = _external.KeyedCache("cupy")

    def load(self, name: str) -> bytes | None:
        """Returns the payload of a kernel, or None. After None, CuPy compiles and calls `save`."""
        return self._cache.find(name.encode(), self.wait_timeout, sys._getframe(1))

    def save(self, name: str, cubin: bytes, source: str) -> None:
        kernel = _KERNEL.search(source)
        self._cache.store(name.encode(), cubin, kernel.group(1) if kernel else name)


def install() -> bool:
    """Enables kiln under CuPy in this process. Returns False, with a warning of the logger `kiln`, if this release of
    CuPy is not supported."""
    if not _external.is_supported("cupy", cupy.__version__):
        return False
    if not isinstance(compiler._kernel_cache_backend, Backend):
        compiler._set_kernel_cache_backend(Backend())
    return True
