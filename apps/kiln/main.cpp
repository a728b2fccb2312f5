// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "apps/kiln/command_line.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/text.hpp"
#include "base/files/files.hpp"

int main(int count, char** values) {
  using namespace kiln::cli;
  std::signal(SIGPIPE, SIG_IGN);  // so that `kiln cache ls | head` does not kill the program
  try {
    const ParsedCommand parsed = parse_command_line(std::vector<std::string>(values + 1, values + count));
    Console console(parsed.arguments);
    if (parsed.command == nullptr && parsed.exit_code != kSuccess) {
      const std::string end = parsed.text.ends_with('\n') ? "" : "\n";
      (void)kiln::write_all(STDERR_FILENO, Text(parsed.text).bytes() + end, "standard error");
      return parsed.exit_code;
    }
    if (parsed.command == nullptr) console.print(parsed.text);
    const int exit_code = parsed.command == nullptr ? kSuccess : parsed.command(parsed.arguments, console);
    const bool written = console.finish();
    return exit_code == kSuccess && !written ? kFailed : exit_code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln: error: %s (this is a bug in kiln)\n", kiln::visible_text(error.what()).c_str());
    return kFailed;
  }
}
