# SPDX-License-Identifier: Apache-2.0
import kiln

scale = kiln.Unit.opencl(
    "scale.cl", "kernel void scale(global float* x, float by) { x[get_global_id(0)] *= by; }", entries=["scale"]
)
shift = kiln.Unit.opencl(
    "shift.cl", "kernel void shift(global float* x, float by) { x[get_global_id(0)] += by; }", entries=["shift"]
)
kiln.request_warmup([scale, shift])  # returns at once

stream = kiln.shared.stream("opencl")
x = stream.copy_of(memoryview(bytes(4096)).cast("f"))
kiln.get(shift, timeout=60).launch(x, 2.0, grid=16, block=64, stream=stream)
kiln.get(scale, timeout=60).launch(x, 3.0, grid=16, block=64, stream=stream)
print(stream.download(x) == memoryview((b"\0\0\xc0\x40") * 1024), kiln.status())
