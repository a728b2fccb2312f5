#pragma once

#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// Returns the entry points of a unit whose entry points are kernel symbols, as for a linker and for nvcc. `kernels`
/// are the symbols in the output. Returns Code::CompileFailed with `log` if one is missing.
Result<std::vector<EntryPoint>> entries_by_symbol(const Unit& unit, const std::vector<std::string>& kernels,
                                                  const std::string& log);

}  // namespace kiln
