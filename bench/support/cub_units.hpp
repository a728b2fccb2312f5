// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/unit.hpp>

namespace kiln::bench {

/// Returns eight units as in a library that uses CUB: they start with the same includes, and each has its own kernels.
std::vector<Unit> cub_units(const std::vector<std::string>& include_roots);

}  // namespace kiln::bench
