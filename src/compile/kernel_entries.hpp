#pragma once

#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// The entries of a unit whose entries are kernels' symbols, as those of a linker and of nvcc are. `kernels` are the
/// symbols that came out. Code::CompileFailed, with `log`, where one is missing.
Result<std::vector<Entry>> entries_by_symbol(const Unit& unit, const std::vector<std::string>& kernels,
                                             const std::string& log);

}  // namespace kiln
