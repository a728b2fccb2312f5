# SPDX-License-Identifier: Apache-2.0
"""Compiles one small kernel with a real system and without a GPU: programs.py SYSTEM. Prints one line of JSON: how often the
system's compiler ran, the time of the call in milliseconds, and a digest of the code."""

import hashlib
import importlib.util
import json
import os
import pathlib
import sys
import time
import types


def counted(owner, name, counts):
    """Counts the calls of a function of a module or class."""
    original = getattr(owner, name)

    def call(*arguments, **named):
        counts.append(name)
        return original(*arguments, **named)

    is_static = isinstance(vars(owner).get(name), staticmethod)
    setattr(owner, name, staticmethod(call) if is_static else call)


# The compilers look up the names that a kernel uses among the globals of this module.
def run_triton(target_name, counts):
    global tl
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

    is_cuda = target_name == "cuda"
    target = GPUTarget("cuda", 80, 32) if is_cuda else GPUTarget("hip", "gfx942", 64)
    counted(type(make_backend(target)), "make_cubin" if is_cuda else "make_hsaco", counts)
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}

    def compile_it():
        kernel = triton.compile(ASTSource(add, signature, {"BLOCK": 256}), target=target)
        return kernel.asm["cubin" if is_cuda else "hsaco"]

    return compile_it


def offer_names_of_torch():
    """Defines the names of torch that TileLang uses while it compiles, for an environment without torch and its CUDA libraries
    (2 GB). TileLang itself is not changed. Kernels cannot be called: their tensors are torch's."""
    torch = types.ModuleType("torch")
    torch.__version__, torch.__path__ = "0.0", []
    torch.dtype = type("dtype", (), {})
    for name in "bool short int long half float double int8 int16 int32 int64 uint8 float16 float32 float64 bfloat16".split():
        setattr(torch, name, torch.dtype())
    torch.device = type("device", (), {})
    torch.Tensor = type("Tensor", (), {"__dlpack_c_exchange_api__": None})  # without it, tvm_ffi builds an extension of torch
    torch.cuda, torch.version = types.ModuleType("torch.cuda"), types.ModuleType("torch.version")
    torch.cuda.is_available = lambda: False
    torch.version.cuda = torch.version.hip = None
    sys.modules.update({module.__name__: module for module in (torch, torch.cuda, torch.version)})


def run_tilelang(counts):
    global T
    if importlib.util.find_spec("torch") is None:
        offer_names_of_torch()
    import tilelang
    import tilelang.language as T
    from tilelang.contrib import nvcc

    counted(nvcc, "compile_cuda", counts)

    @T.prim_func
    def add(x: T.Tensor((1024,), "float32"), y: T.Tensor((1024,), "float32"), out: T.Tensor((1024,), "float32")):
        with T.Kernel(8, threads=128) as block:
            for i in T.Parallel(128):
                out[block * 128 + i] = x[block * 128 + i] + y[block * 128 + i]

    def compile_it():
        kernel = tilelang.compile(add, target={"kind": "cuda", "arch": "sm_80"}, execution_backend="tvm_ffi")
        return kernel.get_kernel_source().encode()

    return compile_it


def run_warp(counts):
    global wp
    import warp as wp
    import warp._src.build as build

    wp.config.quiet = True
    counted(build, "build_cuda", counts)

    @wp.kernel
    def add(x: wp.array(dtype=float), y: wp.array(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = x[i] + y[i]

    return lambda: pathlib.Path(wp.compile_aot_module(add.module, arch=[80], use_ptx=False)[0]).read_bytes()


FLASHINFER_SOURCE = """
#include <tvm/ffi/function.h>
__global__ void add(const float* x, const float* y, float* out) { out[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x]; }
static int64_t answer(int64_t x) { return x + 1; }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(answer, answer);
"""


def run_flashinfer(counts):
    """FlashInfer's own build and lookup code, with a module of ours: its __init__ imports packages that need a GPU."""
    os.environ["FLASHINFER_CUDA_ARCH_LIST"] = "8.0"
    place = pathlib.Path(importlib.util.find_spec("flashinfer").submodule_search_locations[0])
    for name in ("flashinfer", "flashinfer.jit"):
        package = types.ModuleType(name)
        package.__path__ = [str(place.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    from flashinfer.jit import core

    counted(core, "run_ninja", counts)
    source = pathlib.Path("kiln_add.cu").absolute()
    source.write_text(FLASHINFER_SOURCE)

    def compile_it():
        spec = core.gen_jit_spec("kiln_add", [source])
        module = spec.build_and_load()
        if module["answer"](1) != 2:
            raise AssertionError("the library does not work")
        return b"answer"

    return compile_it


SYSTEMS = {
    "triton": lambda counts: run_triton("cuda", counts),
    "triton_amd": lambda counts: run_triton("hip", counts),
    "tilelang": run_tilelang,
    "warp": run_warp,
    "flashinfer": run_flashinfer,
}


def main():
    counts = []
    compile_it = SYSTEMS[sys.argv[1]](counts)
    start = time.perf_counter()
    code = compile_it()
    took = (time.perf_counter() - start) * 1000
    print(json.dumps({"compiles": len(counts), "ms": round(took, 1), "code": hashlib.sha256(code).hexdigest()}))


if __name__ == "__main__":
    main()
