// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/output/console.hpp"

namespace kiln::cli {

/// Asks for confirmation on a terminal before a destructive action; without a terminal, requires --yes. Returns an exit
/// code if the action must not run. `what` describes the action: "remove every entry of /home/a/.cache/kiln".
std::optional<int> confirm_or_exit_code(const Arguments& arguments, const std::string& what, Console& console);

}  // namespace kiln::cli
