#include "compile/source_text.hpp"

#include <string>

namespace kiln {
namespace {

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

// Words may be split by a backslash at the end of a line. Rare, so the text is copied only where it happens.
template <class Ask>
auto with_lines_joined(std::string_view text, Ask ask) {
  if (!has(text, "\\\n") && !has(text, "\\\r\n")) return ask(text);
  std::string joined;
  joined.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "\\\n") {
      i += 1;
    } else if (text.substr(i, 3) == "\\\r\n") {
      i += 2;
    } else {
      joined += text[i];
    }
  }
  return ask(std::string_view(joined));
}

bool names_file(std::string_view text) {
  return has(text, "__FILE__") || has(text, "__builtin_FILE") || has(text, "source_location") ||
         has(text, "__BASE_FILE__");
}

}  // namespace

bool could_include(std::string_view text) {
  if (has(text, "\?\?/")) return true;  // the trigraph of a backslash: not worth a second way of joining lines
  return with_lines_joined(text, [](std::string_view joined) {
    return has(joined, "include") || has(joined, "embed") || has(joined, "import");
  });
}

bool could_name_its_file(std::string_view text) {
  if (has(text, "\?\?/")) return true;
  return with_lines_joined(text, [](std::string_view joined) { return names_file(joined) || has(joined, "assert"); });
}

bool could_name_its_reader(std::string_view text) {
  if (has(text, "\?\?/")) return true;
  return with_lines_joined(text, names_file);
}

std::string_view time_macro(std::string_view text) {
  return with_lines_joined(text, [](std::string_view joined) -> std::string_view {
    for (const std::string_view macro : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
      if (has(joined, macro)) return macro;
    }
    return {};
  });
}

}  // namespace kiln
