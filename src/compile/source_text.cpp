#include "compile/source_text.hpp"

#include <algorithm>
#include <string>

namespace kiln {
namespace {

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

// How many characters the line break takes that a backslash here joins two lines with, blanks before it included, which
// compilers forgive; 0 where it joins none.
std::size_t joint_at(std::string_view text, std::size_t at) {
  if (text[at] != '\\') return 0;
  const std::size_t end = text.find_first_not_of(" \t\r\f\v", at + 1);
  return end != std::string_view::npos && text[end] == '\n' ? end + 1 - at : 0;
}

// Words may be split by a backslash at the end of a line. Rare, so the text is copied only where it happens.
template <class Ask>
auto with_lines_joined(std::string_view text, Ask ask) {
  std::size_t at = text.find('\\');
  while (at != std::string_view::npos && joint_at(text, at) == 0) at = text.find('\\', at + 1);
  if (at == std::string_view::npos) return ask(text);
  std::string joined(text.substr(0, at));
  while (at < text.size()) {
    const std::size_t joint = joint_at(text, at);
    if (joint == 0) joined += text[at];
    at += joint == 0 ? 1 : joint;
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

std::string time_macro_of(const Recipe& recipe) {
  const Unit& unit = recipe.unit;
  std::string_view macro = time_macro(unit.source());
  if (macro.empty()) macro = time_macro(unit.preamble());
  for (const Header& header : unit.headers()) {
    if (macro.empty()) macro = time_macro(header.content);
  }
  for (const std::string& option : unit.options()) {
    if (macro.empty()) macro = time_macro(option);
  }
  for (const auto& [name, value] : recipe.compiler.environment) {
    if (macro.empty()) macro = time_macro(value);
  }
  return std::string(macro);
}

bool has_debug_options(const Recipe& recipe) {
  const auto debug = [](std::string_view text) {
    return text.find("lineinfo") != std::string_view::npos || text.find("line-info") != std::string_view::npos ||
           text.find("-G") != std::string_view::npos || text.find("debug") != std::string_view::npos;
  };
  const auto& options = recipe.unit.options();
  const auto& environment = recipe.compiler.environment;
  return std::any_of(options.begin(), options.end(), debug) ||
         std::any_of(environment.begin(), environment.end(), [&](const auto& v) { return debug(v.second); });
}

}  // namespace kiln
