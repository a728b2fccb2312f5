#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "bundle/bundle.hpp"

namespace kiln::cli {

/// What one bundle has other than another.
struct BundleDiff {
  enum class Kind : unsigned char { Added, Removed, Changed };
  struct Item {
    Kind kind = Kind::Changed;
    std::string unit;
    std::string target;
    std::vector<std::string> why;  ///< of a change, in words
    bool same_bytes = false;       ///< it has another key all the same
  };
  std::vector<std::string> heads;  ///< what differs besides the artifacts: namespace, epoch, signer
  std::vector<Item> items;
  std::size_t same = 0;  ///< artifacts that are the same in both

  bool equal() const { return items.empty(); }
};

/// Artifacts are compared by unit and target, and by their bytes, which are read.
Result<BundleDiff> diff_bundles(Bundle& then, Bundle& now);

/// An artifact of a later bundle that is left out, because an earlier one has the unit for that target.
struct Shadowed {
  std::string path;
  std::string unit;
  std::string target;
  Key key;
};

}  // namespace kiln::cli
