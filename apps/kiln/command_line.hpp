#pragma once

#include <string>
#include <vector>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/console.hpp"

namespace kiln::cli {

/// What the command line asks for: a command to run, or text to show and an exit code.
struct Parsed {
  Arguments arguments;
  int (*command)(const Arguments& arguments, Console& console) = nullptr;
  std::string text;
  int exit_code = 0;
};

/// Every command and option there is stands in command_tree.cpp.
Parsed parse_command_line(std::vector<std::string> arguments);

}  // namespace kiln::cli
