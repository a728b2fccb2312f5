# SPDX-License-Identifier: Apache-2.0
"""Compiles a unit that includes CUB, without include roots. Prints the kinds of the events and where the unit came from."""

import json

import kiln

SOURCE = r"""
#include <cub/block/block_reduce.cuh>
#include <cuda/std/type_traits>
#include <cuda_fp16.h>
extern "C" __global__ void sum(const __half* in, float* out) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  static_assert(cuda::std::is_same<float, float>::value, "");
  const float total = Reduce(storage).Sum(__half2float(in[threadIdx.x]));
  if (threadIdx.x == 0) *out = total;
}
"""

events = []
session = kiln.Session(on_event=events.append)
unit = kiln.Unit.cuda("sum.cu", SOURCE, entries=["sum"], options=["-std=c++17"])
artifact = session.artifact(unit, "sm_80", timeout=240)
installed = [event.message for event in events if event.kind == "headers_installed"]
kinds = [event.kind for event in events]
print(json.dumps({"bytes": len(artifact.bytes), "installed": installed, "kinds": kinds}))
