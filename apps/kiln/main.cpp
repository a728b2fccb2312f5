#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "apps/kiln/command_line.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/text.hpp"

int main(int count, char** values) {
  using namespace kiln::cli;
  std::signal(SIGPIPE, SIG_IGN);  // so that `kiln cache ls | head` does not kill the program
  try {
    const ParsedCommand parsed = parse_command_line(std::vector<std::string>(values + 1, values + count));
    if (parsed.command == nullptr) {
      const bool wrong = parsed.exit_code != kSuccess;
      const Text text = parsed.text;
      std::fprintf(wrong ? stderr : stdout, "%s%s", text.bytes().c_str(), parsed.text.ends_with('\n') ? "" : "\n");
      return parsed.exit_code;
    }
    Console console(parsed.arguments);
    return parsed.command(parsed.arguments, console);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln: error: %s (this is a bug in kiln)\n", kiln::visible_text(error.what()).c_str());
    return kFailed;
  }
}
