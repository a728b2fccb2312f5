// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "analysis/source/rail_patterns.hpp"

namespace kiln::source {

/// Returns the tokens at which kernels are launched with a grid or block of constant size, in order. A function that
/// asks for an occupancy has none.
std::vector<std::size_t> find_launch_shapes(const Structure& source, const Imports& imports);

}  // namespace kiln::source
