// SPDX-License-Identifier: Apache-2.0
#include "backends/command/include_scan.hpp"

#include "backends/source_scan.hpp"

namespace kiln {
namespace {

constexpr std::size_t kMaxNameLength = 4096;

// Skips blanks, joined lines, comments and an opening parenthesis. Returns the position where a name can start.
std::size_t skip_to_name(std::string_view text, std::size_t at) {
  for (bool bracket = false; at < text.size();) {
    const char c = text[at];
    if (c == ' ' || c == '\t') {
      ++at;
    } else if (c == '(' && !bracket) {
      bracket = true;
      ++at;
    } else if (text.substr(at, 2) == "\\\n") {
      at += 2;
    } else if (text.substr(at, 3) == "\\\r\n") {
      at += 3;
    } else if (text.substr(at, 2) == "/*") {
      const std::size_t end = text.find("*/", at + 2);
      if (end == std::string_view::npos) return text.size();
      at = end + 2;
    } else {
      break;
    }
  }
  return at;
}

// Returns true if the word at `at` belongs to a directive.
bool is_directive(std::string_view text, std::size_t at) {
  const std::size_t before = text.substr(0, at).find_last_not_of(" \t");
  return before != std::string_view::npos && text[before] == '#';
}

}  // namespace

IncludeScan scan_includes(std::string_view text) {
  IncludeScan found;
  for (const std::string_view word : {"include", "embed", "import"}) {
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + word.size())) {
      std::size_t end = at + word.size();
      while (end < text.size() && is_word(text[end])) ++end;  // include_next
      const std::size_t open = skip_to_name(text, end);
      if (open >= text.size()) continue;
      const char closing = text[open] == '<' ? '>' : '"';
      if (text[open] != '<' && text[open] != '"') {
        found.computed = found.computed || is_directive(text, at);
        continue;
      }
      const std::string_view rest = text.substr(open + 1, kMaxNameLength);
      const std::size_t length = rest.find_first_of(closing == '>' ? ">\n" : "\"\n");
      if (length == std::string_view::npos || length == 0 || rest[length] == '\n') continue;
      if (rest.substr(0, length).find('\0') != std::string_view::npos) continue;
      found.names.push_back({std::string(rest.substr(0, length)), closing == '"'});
    }
  }
  return found;
}

}  // namespace kiln
