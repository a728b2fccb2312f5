#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

/// An environment variable, or nothing; nothing either where the process runs with raised rights, because then whoever
/// set the variable is not the one whose files are at stake.
std::optional<std::string> environment_variable(const char* name);
/// Those of these that there are, with their names, in the same order.
std::vector<std::pair<std::string, std::string>> environment_variables(std::span<const char* const> names);

}  // namespace kiln
