# SPDX-License-Identifier: Apache-2.0
"""A program that the campaign of kiln.jax compiles and runs, on JAX's CPU backend."""

import json
import sys
import time

import jax
import jax.numpy as jnp
from jax._src import compiler


def step(x):
    """A function that takes XLA about a second to compile."""
    for _ in range(40):
        x = jnp.sin(x) @ jnp.cos(x).T + jnp.tanh(x)
    return x


def build():
    """Compiles and runs the program, and returns the results."""
    compiled = []
    compile_it = compiler.backend_compile_and_load

    def counting(*arguments):
        compiled.append(1)
        return compile_it(*arguments)

    # numpy's arguments, so that this is the only program
    import numpy

    x = numpy.full((16, 16), 0.25, numpy.float32)
    compiler.backend_compile_and_load = counting
    begin = time.perf_counter()
    result = jax.jit(step)(x).block_until_ready()
    end = time.perf_counter()
    compiler.backend_compile_and_load = compile_it
    return {"compiles": len(compiled), "ms": (end - begin) * 1e3, "code": str(float(numpy.asarray(result).sum()))}


if __name__ == "__main__":
    begin = time.perf_counter()
    if "install" in sys.argv:
        import kiln.jit

        assert kiln.jit.install(host_code=("jax",))["jax"].installed
    installed = time.perf_counter()
    print(json.dumps({**build(), "install_ms": (installed - begin) * 1e3, "version": jax.__version__}))
