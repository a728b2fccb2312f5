#pragma once

#include <optional>
#include <string>

namespace kiln {

/// An environment variable, or nothing; nothing either where the process runs with raised rights, because then whoever
/// set the variable is not the one whose files are at stake.
std::optional<std::string> environment_variable(const char* name);

}  // namespace kiln
