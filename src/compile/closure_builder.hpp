#pragma once

#include <string>
#include <vector>

#include "base/file_digests.hpp"
#include "compile/file_recorder.hpp"
#include "core/recipe.hpp"

namespace kiln {

/// The closure of a compile, or why it has none that could be trusted.
struct BuiltClosure {
  Closure closure;
  std::string not_cacheable;  ///< empty: the closure covers all that the compile depended on
};

/// Turns what a compiler asked the file system into the closure of its compile. `debug_paths` says that the options put
/// paths and times of files into the output; otherwise the texts and the output (`bytes`) are searched for such.
/// `vendor_folders` lie outside the include roots and hold the toolchain's own headers, of which the texts are not
/// searched, as they are not where an include root is a vendor's.
BuiltClosure build_closure(const Recipe& recipe, const std::vector<Observation>& observations, bool debug_paths,
                           std::string_view bytes, FileDigests& digests,
                           const std::vector<std::string>& vendor_folders = {});

}  // namespace kiln
