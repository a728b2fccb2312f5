#pragma once

#include <vector>

#include "support/driver_double/control_table.hpp"

namespace kiln::test {

/// A kernel of examples/spatial as the host's compiler made it of the same .cu file, for the driver double to run.
struct SpatialHostKernel {
  const char* name;
  DoubleKernel run;
};

/// All of them, and those of kStandIns.
std::vector<SpatialHostKernel> spatial_host_kernels();

/// CUDA source with nothing in its kernels: what a test launches in the place of CCCL's algorithms, whose library runs
/// on NVIDIA's driver alone. What they do is in their host functions.
extern const char* const kStandIns;

}  // namespace kiln::test
