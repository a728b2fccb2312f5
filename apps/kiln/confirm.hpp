#pragma once

#include <optional>
#include <string>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/console.hpp"

namespace kiln::cli {

/// Asks on a terminal before something is destroyed; elsewhere --yes must have been said. The exit code where it is not
/// to be done. `what` is what would be: "remove every entry of /home/a/.cache/kiln".
std::optional<int> unless_confirmed(const Arguments& arguments, const std::string& what, Console& console);

}  // namespace kiln::cli
