#pragma once

#include <cstddef>
#include <string_view>

namespace kiln {

/// Whether brackets of a JSON text lie deeper in one another than this. Asked before text from outside is parsed: four
/// megabytes of brackets take the parser seconds.
inline bool nests_deeper(std::string_view text, std::size_t limit) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') ++at;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if ((c == '{' || c == '[') && ++depth > limit) return true;
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return false;
}

}  // namespace kiln
