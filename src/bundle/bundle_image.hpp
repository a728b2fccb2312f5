#pragma once

#include <numeric>
#include <string>
#include <vector>

namespace kiln {

/// The bytes of a bundle in the pieces in which it travels. A value.
struct BundleImage {
  std::string head;
  std::vector<std::string> groups;

  /// As one file.
  std::string whole() const { return std::accumulate(groups.begin(), groups.end(), head); }
};

}  // namespace kiln
