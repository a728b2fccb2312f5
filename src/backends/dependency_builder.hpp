// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/file_access.hpp"
#include "base/files/file_digest_cache.hpp"
#include "core/recipe.hpp"

namespace kiln {

/// The dependency set of a compile, or the reason why it has no reliable one.
struct DependencyResult {
  DependencySet dependency_set;
  std::string uncacheable_reason;  ///< empty if the dependency set covers all inputs of the compile
  bool permanent = false;          ///< true if that reason stays as long as the files do not change
};

/// Builds the dependency set of a compile from its file accesses. `debug_paths` means that the options write paths and
/// times of files into the output; otherwise the source texts and the output (`bytes`) are searched for them.
/// `vendor_directories` are outside the include roots and contain headers of the toolchain. Their texts are not
/// searched, and neither are those of an include root that is a vendor's.
DependencyResult build_dependency_set(const Recipe& recipe, const std::vector<FileAccess>& observations,
                                      bool debug_paths, std::string_view bytes, FileDigestCache& digests,
                                      const std::vector<std::string>& vendor_directories = {});

}  // namespace kiln
