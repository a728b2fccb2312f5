// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "bundle/bundle.hpp"

namespace kiln::cli {

/// The differences between two bundles.
struct BundleDiff {
  enum class Kind : unsigned char { Added, Removed, Changed };
  struct Item {
    Kind kind = Kind::Changed;
    std::string unit;
    std::string target;
    std::vector<std::string> reason;  ///< reasons of a change, human-readable
    bool same_bytes = false;          ///< true if only the key differs
  };
  std::vector<std::string> heads;  ///< differences in namespace, epoch and signer
  std::vector<Item> items;
  std::size_t same = 0;  ///< number of artifacts that are equal in both

  bool equal() const { return items.empty(); }
};

/// Compares the artifacts of two bundles by unit and target. Reads and compares their bytes.
Result<BundleDiff> diff_bundles(Bundle& then, Bundle& now);

/// An artifact of a later bundle that is skipped because an earlier bundle has the unit for this target.
struct Shadowed {
  std::string path;
  std::string unit;
  std::string target;
  ArtifactKey key;
};

}  // namespace kiln::cli
