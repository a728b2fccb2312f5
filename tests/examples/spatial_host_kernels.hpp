// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "support/fakes/cuda_driver/control_table.hpp"

namespace kiln::test {

/// A kernel of examples/spatial, built by the host compiler from the same .cu file, for the fake driver to run.
struct SpatialHostKernel {
  const char* name;
  FakeKernel run;
};

/// Returns all kernels, and those of kStandIns.
std::vector<SpatialHostKernel> spatial_host_kernels();

/// CUDA source with empty kernels, which tests launch in place of CCCL's algorithms, because that library runs only on
/// NVIDIA's driver. Their host functions contain the algorithms.
extern const char* const kStandIns;

}  // namespace kiln::test
