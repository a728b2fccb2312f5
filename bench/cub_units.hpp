#pragma once

#include <string>
#include <vector>

#include <kiln/unit.hpp>

namespace kiln::bench {

/// Eight units as a library on CUB has them: they begin with the same includes, and each has kernels of its own.
std::vector<Unit> cub_units(const std::vector<std::string>& include_roots);

}  // namespace kiln::bench
