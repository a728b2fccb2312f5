#pragma once

#include <string>
#include <vector>

#include "apps/kiln/render_json.hpp"
#include "apps/kiln/unit_arguments.hpp"

namespace kiln::cli {

/// What Make and Ninja read to know when a file has to be built again: the kiln.toml, the sources, and every file that
/// their compiles read. Paths are absolute.
std::string depfile_text(const std::string& output, const std::string& manifest, const std::vector<Job>& jobs,
                         const std::vector<CompileOutcome>& outcomes);

}  // namespace kiln::cli
