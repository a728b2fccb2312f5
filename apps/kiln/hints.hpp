#pragma once

#include <string_view>

#include <kiln/result.hpp>

namespace kiln::cli {

/// What to do next about an error, in one sentence, where its message may not know: the command has a say in it
/// (`kiln cache verify`). Every code has one; docs/exit-codes.md lists them.
std::string_view hint_for(Code code, std::string_view command);

/// Whether a message says itself what to do next. Where kiln's do, they say it behind a semicolon or name a command.
bool names_next_step(std::string_view message);

}  // namespace kiln::cli
