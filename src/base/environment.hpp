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

/// What a user has below the folder that an XDG variable names, or below `home` in his own where that is not set to an
/// absolute path; empty where he has none. The user database is not asked: that may load libraries and reach for the
/// network, and a container's user is often not in it.
std::string user_path(const char* variable, const std::string& home, const std::string& below);

}  // namespace kiln
