# SPDX-License-Identifier: Apache-2.0
"""Kernels that the tests and benchmarks of kiln.triton compile, for a given target and without a device."""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402


@triton.jit
def add_one(x, y, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    inside = i < n
    tl.store(y + i, tl.load(x + i, mask=inside) + 1.0, mask=inside)


@triton.jit
def does_not_compile(x, y, n, block: tl.constexpr):
    tl.static_assert(block == 0)


CUDA = GPUTarget("cuda", 90, 32)
AMD = GPUTarget("hip", "gfx942", 64)
SUFFIXES = {"cuda": ("cubin", "ptx"), "hip": ("hsaco", "amdgcn")}


def build(kernel=add_one, block=64, target=CUDA):
    """Compiles and returns the results."""
    binary, assembly = SUFFIXES[target.backend]
    compiled = []

    def listener(*, cache_hit, **_):
        compiled.append(not cache_hit)

    triton.knobs.compilation.listener = listener
    source = ASTSource(
        fn=kernel,
        signature={"x": "*fp32", "y": "*fp32", "n": "i32", "block": "constexpr"},
        constexprs={"block": block},
    )
    looked = []
    asked = triton.compiler.compiler.get_cache_manager

    def manager(key):
        looked.append(time.perf_counter())  # at this point Triton has computed its key
        return asked(key)

    triton.compiler.compiler.get_cache_manager = manager
    begin = time.perf_counter()
    result = triton.compile(source, target=target)
    end = time.perf_counter()
    triton.compiler.compiler.get_cache_manager = asked
    return {
        "compiles": sum(compiled),
        "ms": (end - begin) * 1e3,
        "hit_ms": (end - looked[0]) * 1e3,
        "cubin": result.asm[binary].hex(),
        "ptx": result.asm[assembly],
        "hash": result.hash,
        "paths": dict(result.metadata_group),
    }


if __name__ == "__main__":
    begin = time.perf_counter()
    if "install" in sys.argv:
        import kiln.triton

        kiln.triton.install()
    installed = time.perf_counter()
    print(json.dumps({**build(target=AMD if "amd" in sys.argv else CUDA), "install_ms": (installed - begin) * 1e3}))
