// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

/// Returns an environment variable, or nothing if it is not set. Returns nothing if the process runs with elevated
/// privileges: the user who set the variable is then not the user whose files are at risk.
std::optional<std::string> environment_variable(const char* name);
/// Returns the names and values of those variables that are set, in the same order.
std::vector<std::pair<std::string, std::string>> environment_variables(std::span<const char* const> names);

/// Returns the path `below` in the directory that an XDG variable names, or in `home` below HOME if the variable is not
/// set to an absolute path. Returns an empty path if HOME is not absolute either. Does not query the user database:
/// that can load libraries and use the network, and the user of a container is often not in it.
std::string user_path(const char* variable, const std::string& home, const std::string& below);

}  // namespace kiln
