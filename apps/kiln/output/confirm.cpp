// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/output/confirm.hpp"

#include <unistd.h>

#include <cctype>
#include <iostream>

#include "apps/kiln/exit_code.hpp"

namespace kiln::cli {

std::optional<int> confirm_or_exit_code(const Arguments& arguments, const std::string& what, Console& console) {
  if (arguments.yes) return std::nullopt;
  if (isatty(STDIN_FILENO) == 0) {
    console.error({Code::InvalidArgument, "pass --yes to " + what + " without confirmation"});
    return kUsage;
  }
  std::string question = what;
  question.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(question.front())));
  std::cerr << printable(question) << "? [y/N] " << std::flush;
  std::string answer;
  const bool yes = std::getline(std::cin, answer) && (answer == "y" || answer == "Y" || answer == "yes");
  return yes ? std::nullopt : std::optional<int>(kFailed);
}

}  // namespace kiln::cli
