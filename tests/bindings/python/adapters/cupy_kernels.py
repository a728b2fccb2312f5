# SPDX-License-Identifier: Apache-2.0
"""Kernels that the tests of kiln.cupy compile, with CuPy's compiler and NVRTC and without a device."""

import json
import sys
import time
import types

import cupy
from cupy.cuda import compiler

SOURCE = r"""
template <typename T> __device__ T twice(T x) { return x + x; }
extern "C" __global__ void double_it(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = twice(x[i]);
}
template <typename T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }
"""


class Module:
    """What CuPy has in place of a module in the driver. CuPy's own needs a device."""

    def load(self, code):
        self.code = bytes(code)

    def _set_mapping(self, mapping):
        self.mapping = mapping


# The two functions of CuPy that ask the device; CuPy's code around them is unchanged.
compiler.function = types.SimpleNamespace(Module=Module)
compiler._get_arch_for_options_for_nvrtc = lambda arch=None: (f"-arch=sm_{arch}", "cubin")


def build(source=SOURCE, names=None, options=()):
    """Compiles and returns the results."""
    compiled = []
    compile_it = compiler._compile_using_nvrtc_no_warning

    def counting(*arguments):
        compiled.append(1)
        return compile_it(*arguments)

    compiler._compile_using_nvrtc_no_warning = counting
    begin = time.perf_counter()
    try:
        module = compiler._compile_module_with_cache(source, options, arch="90", name_expressions=names)
    finally:
        compiler._compile_using_nvrtc_no_warning = compile_it
    end = time.perf_counter()
    mapping = {name: module.mapping[name] for name in names or ()}
    return {"compiles": len(compiled), "ms": (end - begin) * 1e3, "code": module.code.hex(), "mapping": mapping}


if __name__ == "__main__":
    begin = time.perf_counter()
    if "install" in sys.argv:
        import kiln.jit

        assert kiln.jit.install()["cupy"].installed
    installed = time.perf_counter()
    print(json.dumps({**build(), "install_ms": (installed - begin) * 1e3, "version": cupy.__version__}))
