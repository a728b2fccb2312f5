// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

/// A third-party library that is linked or compiled into the program. The name is the one in
/// docs/internals/dependencies.md.
struct LinkedLibrary {
  std::string name;
  std::string version;  ///< version of the headers at compile time
};
std::vector<LinkedLibrary> linked_libraries();

}  // namespace kiln::cli
