// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "support/fakes/cuda_driver/control_table.hpp"

namespace kiln::test {

/// A kernel of examples/many_kernels/kernels/semiring.cu built by the host compiler, for the fake driver to run.
struct HostKernel {
  const char* name;
  FakeKernel run;
};

/// Returns all 31 kernels.
std::vector<HostKernel> host_kernels();

}  // namespace kiln::test
