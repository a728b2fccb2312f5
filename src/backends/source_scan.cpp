// SPDX-License-Identifier: Apache-2.0
#include "backends/source_scan.hpp"

#include <string.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

namespace kiln {
namespace {

// memmem is several times faster than string_view::find in texts full of underscores.
bool has(std::string_view text, std::string_view word) {
  return memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
}

// Returns the number of characters from the backslash at `at` to the end of the line break that it removes, including
// blanks in between, which compilers accept; 0 if it joins no lines.
std::size_t line_join_length(std::string_view text, std::size_t at) {
  if (text[at] != '\\') return 0;
  const std::size_t end = text.find_first_not_of(" \t\r\f\v", at + 1);
  return end != std::string_view::npos && text[end] == '\n' ? end + 1 - at : 0;
}

// Calls `ask` with the lines joined. A backslash at the end of a line can split words. That is rare, so the text is
// copied only if necessary.
template <class Ask>
auto with_lines_joined(std::string_view text, Ask ask) {
  if (!has_joined_lines(text)) return ask(text);
  const std::string joined = join_lines(text);
  return ask(std::string_view(joined));
}

// A text with the trigraph of a backslash always returns true; joining lines at trigraphs is not implemented.
template <class Ask>
bool could(std::string_view text, Ask ask) {
  return has(text, "\?\?/") || with_lines_joined(text, ask);
}

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool has_trigraph(std::string_view text) {
  for (std::size_t at = text.find("\?\?"); at != std::string_view::npos; at = text.find("\?\?", at + 1)) {
    if (at + 2 < text.size() && std::string_view("=/'()!<>-").find(text[at + 2]) != std::string_view::npos) return true;
  }
  return false;
}

// A scanner that reads a text like a preprocessor after joining lines. If compilers differ in their interpretation, it
// is marked ambiguous and continues.
class SourceScanner {
 public:
  explicit SourceScanner(std::string_view text) : text_(text) {}

  // Returns the current character or the next one; 0 at the end.
  char current() {
    join();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  char next_char() const {
    SourceScanner ahead = *this;
    ahead.step();
    return ahead.current();
  }
  void step() {
    join();
    if (at_ < text_.size()) ++at_;
  }
  std::size_t at() const { return at_; }
  bool is_unambiguous() const { return sure_; }
  void mark_ambiguous() { sure_ = false; }

  std::string word() {
    std::string word;
    for (; is_word(current()); step()) word += current();
    return word;
  }

  // Skips a comment. Returns true if there was one. A line comment ends before its line break.
  bool comment() {
    if (current() != '/' || (next_char() != '/' && next_char() != '*')) return false;
    const bool of_line = next_char() == '/';
    step();
    step();
    while (of_line ? current() != '\n' : current() != '*' || next_char() != '/') {
      if (current() == '\0') {
        if (!of_line) mark_ambiguous();
        return true;
      }
      step();
    }
    if (of_line) return true;
    step();
    step();
    return true;
  }
  void space(bool across_lines) {
    for (;;) {
      if (is_blank(current()) && (across_lines || current() != '\n')) {
        step();
      } else if (!comment()) {
        return;
      }
    }
  }

 private:
  void join() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (rest[0] == '\0' || (rest[0] == '\r' && !rest.starts_with("\r\n"))) mark_ambiguous();
      if (rest[0] != '\\') return;
      const std::size_t plain = rest.starts_with("\\\n") ? 2 : rest.starts_with("\\\r\n") ? 3 : 0;
      // Some compilers accept blanks after the backslash. A backslash at the end of the text has no defined meaning.
      if (plain == 0 && (rest.size() == 1 || line_join_length(text_, at_) != 0)) mark_ambiguous();
      if (plain == 0) return;
      at_ += plain;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool sure_ = true;
};

// Skips a literal up to the closing quote, or up to the end of the line if there is none: an apostrophe in an #error,
// or between digits. Text that looks like a comment in between can be a comment.
void skip_literal(SourceScanner& walk, std::string& line) {
  const char quote = walk.current();
  if (quote == '"' && line.ends_with('R')) walk.mark_ambiguous();  // a raw string can span many lines
  do {
    if (walk.current() == '\\') {
      line += walk.current();
      walk.step();
    }
    if (walk.current() == '/' && walk.next_char() == '*') walk.mark_ambiguous();
    if (walk.current() == '\n' || walk.current() == '\0') return;
    line += walk.current();
    walk.step();
  } while (walk.current() != quote);
  line += quote;
  walk.step();
}

// Returns true if the line ends within a possible header name in angle brackets: `<a/*b>` contains no comment.
bool in_header_name(std::string_view directive, std::string_view line) {
  if (!directive.starts_with("include") && !has(line, "__has_include")) return false;
  const std::size_t bracket = line.find_last_of("<>");
  return bracket != std::string_view::npos && line[bracket] == '<';
}

// Returns the rest of a directive's line, with lines joined and comments replaced by blanks, and skips its line break.
std::string read_line(SourceScanner& walk, std::string_view directive) {
  std::string line;
  while (walk.current() != '\n' && walk.current() != '\0') {
    const char c = walk.current();
    if (walk.comment()) {
      if (in_header_name(directive, line)) walk.mark_ambiguous();
      line += ' ';
    } else if (c == '"' || c == '\'') {
      skip_literal(walk, line);
    } else {
      line += is_blank(c) ? ' ' : c;
      walk.step();
    }
  }
  walk.step();
  return line;
}

// The macro of <cassert> writes the file's name into the output; static_assert does not.
bool has_assert(std::string_view text) {
  constexpr std::string_view kStatic = "tatic_";
  for (std::size_t at = text.find("assert"); at != std::string_view::npos; at = text.find("assert", at + 1)) {
    if (!text.substr(0, at).ends_with(kStatic)) return true;
  }
  return false;
}

bool names_file(std::string_view text) {
  return has(text, "__FILE__") || has(text, "__builtin_FILE") || has(text, "source_location") ||
         has(text, "__BASE_FILE__");
}

// Returns true if neither `<` nor `"` follows the directive or operator that ends here, but something that can expand
// to a name. The name of an operator without parentheses is the operand of `defined` or `#ifdef`.
bool has_computed_name(std::string_view rest, bool is_operator) {
  const auto skip_blanks = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\f\v"), rest.size())); };
  skip_blanks();
  if (is_operator) {
    if (!rest.starts_with('(')) return rest.starts_with('/');  // a comment
    rest.remove_prefix(1);
    skip_blanks();
  }
  return !rest.empty() && rest.front() != '<' && rest.front() != '"' && rest.front() != '\n';
}

bool computes_name_after(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word, 1); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::string_view before = text.substr(0, text.find_last_not_of(" \t\r\f\v", at - 1) + 1);
    const bool is_operator = text.substr(0, at).ends_with("__has_");
    const bool is_directive =
        before.ends_with('#') || before.ends_with("%:") || before.ends_with("\?\?=") || before.ends_with("*/");
    std::string_view rest = text.substr(at + word.size());
    if (rest.starts_with("_next")) rest.remove_prefix(std::string_view("_next").size());
    if (is_operator && rest.starts_with("__")) rest.remove_prefix(2);
    if (!rest.empty() && is_word(rest.front())) continue;
    if ((is_directive || is_operator) && has_computed_name(rest, is_operator)) return true;
  }
  return false;
}

}  // namespace

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

bool has_joined_lines(std::string_view text) {
  std::size_t at = text.find('\\');
  while (at != std::string_view::npos && line_join_length(text, at) == 0) at = text.find('\\', at + 1);
  return at != std::string_view::npos;
}

std::string join_lines(std::string_view text) {
  std::string joined;
  joined.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t joint = line_join_length(text, at);
    if (joint == 0) joined += text[at];
    at += joint == 0 ? 1 : joint;
  }
  return joined;
}

bool may_include(std::string_view text) {
  return could(text, [](std::string_view joined) {
    return has(joined, "include") || has(joined, "embed") || has(joined, "import");
  });
}

bool may_compute_include(std::string_view text) {
  return could(text, [](std::string_view joined) {
    return computes_name_after(joined, "include") || computes_name_after(joined, "import") ||
           computes_name_after(joined, "embed");
  });
}

bool may_expand_file_macro(std::string_view text) {
  return could(text, [](std::string_view joined) { return names_file(joined) || has_assert(joined); });
}

bool may_expand_includer_name(std::string_view text) { return could(text, names_file); }

bool may_expand_base_file(std::string_view text) {
  return could(text, [](std::string_view joined) { return has(joined, "__BASE_FILE__"); });
}

std::string_view leading_directives(std::string_view source) {
  SourceScanner walk(source);
  std::size_t end = 0;
  bool includes = false;
  int open = 0;
  for (walk.space(true); walk.current() == '#'; walk.space(true)) {
    walk.step();
    walk.space(false);
    const std::string name = walk.word();
    const std::string line = read_line(walk, name);
    // A pragma can refer to the declaration that follows it. NVRTC does not precompile a text that ends with such a
    // pragma.
    if (name != "pragma") end = walk.at();
    includes |= name == "include" || name == "include_next";
    if (name.starts_with("if")) ++open;
    if (name == "endif") --open;
    if (open < 0) return {};
    if (name == "line" || (!name.empty() && name[0] <= '9'))
      return {};  // NVRTC creates no precompiled header in this
                  // case
    if (name == "pragma" && (has(line, "hdrstop") || has(line, "pch"))) return {};
  }
  const bool digraph = walk.current() == '%' && walk.next_char() == ':';
  if (!walk.is_unambiguous() || !includes || open != 0 || digraph) return {};
  if (has_trigraph(source.substr(0, walk.at() + 3)) || walk.word() == "_Pragma") return {};
  return source.substr(0, end);
}

std::vector<std::string_view> options_of(const Recipe& recipe) {
  std::vector<std::string_view> options(recipe.unit.options().begin(), recipe.unit.options().end());
  for (const auto& [name, value] : recipe.compiler.environment) options.push_back(value);
  return options;
}

std::vector<std::string_view> texts_of(const Recipe& recipe) {
  std::vector<std::string_view> texts{recipe.unit.source(), recipe.unit.preamble()};
  for (const Header& header : recipe.unit.headers()) texts.push_back(header.content);
  const std::vector<std::string_view> options = options_of(recipe);
  texts.insert(texts.end(), options.begin(), options.end());
  return texts;
}

bool has_debug_options(const Recipe& recipe) {
  const std::vector<std::string_view> options = options_of(recipe);
  return std::any_of(options.begin(), options.end(), [](std::string_view text) {
    return has(text, "lineinfo") || has(text, "line-info") || has(text, "-G") || has(text, "debug");
  });
}

}  // namespace kiln
