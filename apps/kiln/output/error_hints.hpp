// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <kiln/result.hpp>

namespace kiln::cli {

/// Returns the next step for an error whose message does not name one. It depends on the command (`kiln cache verify`).
/// Every code has a hint; docs/reference/errors.md lists them.
std::string_view hint_for(Code code, std::string_view command);

/// Returns true if a message names a next step: after a semicolon, or as a quoted kiln command.
bool names_next_step(std::string_view message);

}  // namespace kiln::cli
