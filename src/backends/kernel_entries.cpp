#include "backends/kernel_entries.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kiln {

Result<std::vector<EntryPoint>> entries_by_symbol(const Unit& unit, const std::vector<std::string>& kernels,
                                                  const std::string& log) {
  std::vector<EntryPoint> entries;
  for (const std::string& name : unit.entries()) {
    if (std::find(kernels.begin(), kernels.end(), name) == kernels.end()) {
      std::string all;
      for (const std::string& kernel : kernels) all.append(all.empty() ? "" : ", ").append(kernel);
      return make_error(Code::CompileFailed,
                        "unit '" + unit.name() + "' has no kernel '" + name +
                            "'; it has: " + (all.empty() ? "none" : all) +
                            " (these are symbols: a name that is not extern \"C\" is mangled)",
                        log);
    }
    entries.push_back({name, name});
  }
  return entries;
}

}  // namespace kiln
