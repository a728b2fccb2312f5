// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/output/console.hpp"

namespace kiln::cli {

/// The result of parsing: a command to run, or a text to print and an exit code.
struct ParsedCommand {
  Arguments arguments;
  int (*command)(const Arguments& arguments, Console& console) = nullptr;
  std::string text;
  int exit_code = 0;
};

/// Parses the command line. command_tree.cpp defines every command and option.
ParsedCommand parse_command_line(std::vector<std::string> arguments);

}  // namespace kiln::cli
