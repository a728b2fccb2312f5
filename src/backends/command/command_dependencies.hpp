// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include <kiln/result.hpp>

#include "backends/file_access.hpp"
#include "core/recipe.hpp"

namespace kiln {

/// State recorded before the start of a program whose file accesses kiln cannot trace.
struct BeforeRun {
  std::chrono::nanoseconds started{};  ///< wall time
  /// Digests of files that the program may read, by path.
  std::unordered_map<std::string, Digest> digests{};
};

/// Returns true if the file is on a network file system. A parameter for tests.
using IsOnNetwork = std::function<bool(const std::string& path)>;
bool is_on_network(const std::string& path);

/// Reads the files that the recipe can include before it is compiled, if the texts contain the names literally. It
/// searches the unit's include roots and those of `directories` that are on a network file system. The caller sets
/// `started`.
BeforeRun look_before_run(const Recipe& recipe, const std::vector<std::string>& directories,
                          const IsOnNetwork& on_network = is_on_network);

/// Returns the reason why the content of a local file after a run does not prove which content a program read that
/// started at `started`; empty if it does. A writer that uses a shared mapping does not update either time at once and
/// is not detected.
std::string unsettled_reason(const FileStamp& stamp, std::chrono::nanoseconds started);

/// Infers the file accesses of a program that compiled a recipe.
///
/// A dependency file lists the files that were read. It does not list the paths that the compiler checked and found
/// missing, where a new file would be read instead. The function therefore searches the texts for their includes. For
/// every directory in which the compiler looks for such a name it returns one access: a file that was read, a file that
/// exists and was not read, or a missing file. That is more than the compiler accessed (branches that are not taken
/// count too), which costs at most one extra compile.
///
/// `dependencies` come from the dependency file. Relative paths refer to the directory in which the program ran, which
/// is private to the unit. `directories` are the directories that the program searches in addition to the unit's
/// include roots. Returns Code::Unsupported if the unit reads inputs that a dependency set cannot contain.
///
/// kiln does not see the bytes that the program reads. The content of a file after the run counts as the content that
/// was read under two conditions: it equals the content before the run, if that is known, and the file's times are
/// older than the start of the run by more than one step of the file system's clock. On a network file system, which
/// has another clock, the times prove nothing and the content before the run must be known.
Result<std::vector<FileAccess>> infer_file_accesses(const Recipe& recipe, const std::vector<std::string>& dependencies,
                                                    const std::vector<std::string>& directories,
                                                    const BeforeRun& before,
                                                    const IsOnNetwork& on_network = is_on_network);

}  // namespace kiln
