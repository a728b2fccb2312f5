#pragma once

#include <vector>

#include "support/driver_double/control_table.hpp"

namespace kiln::test {

/// A kernel of kernels/semiring/semiring.cu as the host's compiler made it, for the driver double to run.
struct HostKernel {
  const char* name;
  DoubleKernel run;
};

/// All 31.
std::vector<HostKernel> host_kernels();

}  // namespace kiln::test
