#include "apps/kiln/confirm.hpp"

#include <unistd.h>

#include <cctype>
#include <iostream>

#include "apps/kiln/exit_code.hpp"

namespace kiln::cli {

std::optional<int> unless_confirmed(const Arguments& arguments, const std::string& what, Console& console) {
  if (arguments.yes) return std::nullopt;
  if (isatty(STDIN_FILENO) == 0) {
    console.error({Code::InvalidArgument, "say --yes to " + what + " without being asked"});
    return kUsage;
  }
  std::string question = what;
  question.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(question.front())));
  std::cerr << question << "? [y/N] " << std::flush;
  std::string answer;
  const bool yes = std::getline(std::cin, answer) && (answer == "y" || answer == "Y" || answer == "yes");
  return yes ? std::nullopt : std::optional<int>(kFailed);
}

}  // namespace kiln::cli
