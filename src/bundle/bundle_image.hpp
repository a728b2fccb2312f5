// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <string>
#include <vector>

namespace kiln {

/// The bytes of a bundle, split into the parts in which it is distributed. A value type.
struct BundleImage {
  std::string head;
  std::vector<std::string> groups;

  /// Returns the bundle as one file.
  std::string to_file() const { return std::accumulate(groups.begin(), groups.end(), head); }
};

}  // namespace kiln
