#include "compile/source_text.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
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
  const std::string joined = join_lines(text);
  return ask(std::string_view(joined));
}

// The trigraph of a backslash is not worth a second way of joining lines: with one everything is possible.
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

// Walks over a text as a preprocessor does that has joined its lines. Where compilers differ in how they would, it is
// no longer sure, and goes on somehow.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  // The character here and the one behind it; zero at the end.
  char here() {
    join();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  char behind() const {
    Walk ahead = *this;
    ahead.step();
    return ahead.here();
  }
  void step() {
    join();
    if (at_ < text_.size()) ++at_;
  }
  std::size_t at() const { return at_; }
  bool sure() const { return sure_; }
  void doubt() { sure_ = false; }

  std::string word() {
    std::string word;
    for (; is_word(here()); step()) word += here();
    return word;
  }

  // Whether a comment began here; it is behind us then. That of a line ends before its line break.
  bool comment() {
    if (here() != '/' || (behind() != '/' && behind() != '*')) return false;
    const bool of_line = behind() == '/';
    step();
    step();
    while (of_line ? here() != '\n' : here() != '*' || behind() != '/') {
      if (here() == '\0') {
        if (!of_line) doubt();
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
      if (is_blank(here()) && (across_lines || here() != '\n')) {
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
      if (rest[0] == '\0' || (rest[0] == '\r' && !rest.starts_with("\r\n"))) doubt();
      if (rest[0] != '\\') return;
      const std::size_t plain = rest.starts_with("\\\n") ? 2 : rest.starts_with("\\\r\n") ? 3 : 0;
      // Some compilers forgive blanks behind the backslash, and what joins the last line to nothing is anybody's guess.
      if (plain == 0 && (rest.size() == 1 || joint_at(text_, at_) != 0)) doubt();
      if (plain == 0) return;
      at_ += plain;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool sure_ = true;
};

// From one quote to the next, or to the end of the line where there is none: an apostrophe in an #error, or between
// digits. Should there be what looks like a comment, it may well be one.
void skip_literal(Walk& walk, std::string& line) {
  const char quote = walk.here();
  if (quote == '"' && line.ends_with('R')) walk.doubt();  // raw: it may go on over many lines
  do {
    if (walk.here() == '\\') {
      line += walk.here();
      walk.step();
    }
    if (walk.here() == '/' && walk.behind() == '*') walk.doubt();
    if (walk.here() == '\n' || walk.here() == '\0') return;
    line += walk.here();
    walk.step();
  } while (walk.here() != quote);
  line += quote;
  walk.step();
}

// Whether the line ends within what may be the name of a header in angle brackets: in `<a/*b>` there is no comment.
bool in_header_name(std::string_view directive, std::string_view line) {
  if (!directive.starts_with("include") && !has(line, "__has_include")) return false;
  const std::size_t bracket = line.find_last_of("<>");
  return bracket != std::string_view::npos && line[bracket] == '<';
}

// What is behind a directive's name, its lines joined and its comments blanks; its line break is behind us then.
std::string read_line(Walk& walk, std::string_view directive) {
  std::string line;
  while (walk.here() != '\n' && walk.here() != '\0') {
    const char c = walk.here();
    if (walk.comment()) {
      if (in_header_name(directive, line)) walk.doubt();
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

bool names_file(std::string_view text) {
  return has(text, "__FILE__") || has(text, "__builtin_FILE") || has(text, "source_location") ||
         has(text, "__BASE_FILE__");
}

}  // namespace

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

std::string join_lines(std::string_view text) {
  std::string joined;
  joined.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t joint = joint_at(text, at);
    if (joint == 0) joined += text[at];
    at += joint == 0 ? 1 : joint;
  }
  return joined;
}

bool could_include(std::string_view text) {
  return could(text, [](std::string_view joined) {
    return has(joined, "include") || has(joined, "embed") || has(joined, "import");
  });
}

bool could_name_its_file(std::string_view text) {
  return could(text, [](std::string_view joined) { return names_file(joined) || has(joined, "assert"); });
}

bool could_name_its_reader(std::string_view text) { return could(text, names_file); }

bool could_name_its_program(std::string_view text) {
  return could(text, [](std::string_view joined) { return has(joined, "__BASE_FILE__"); });
}

std::string_view leading_directives(std::string_view source) {
  Walk walk(source);
  std::size_t end = 0;
  bool includes = false;
  int open = 0;
  for (walk.space(true); walk.here() == '#'; walk.space(true)) {
    walk.step();
    walk.space(false);
    const std::string name = walk.word();
    const std::string line = read_line(walk, name);
    // A pragma may be about the declaration behind it. NVRTC refuses to precompile a text that ends with such a one.
    if (name != "pragma") end = walk.at();
    includes |= name == "include" || name == "include_next";
    if (name.starts_with("if")) ++open;
    if (name == "endif") --open;
    if (open < 0) return {};
    if (name == "line" || (!name.empty() && name[0] <= '9')) return {};  // with it NVRTC makes no precompiled header
    if (name == "pragma" && (has(line, "hdrstop") || has(line, "pch"))) return {};
  }
  const bool digraph = walk.here() == '%' && walk.behind() == ':';
  if (!walk.sure() || !includes || open != 0 || digraph) return {};
  if (has_trigraph(source.substr(0, walk.at() + 3)) || walk.word() == "_Pragma") return {};
  return source.substr(0, end);
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
  for (const std::string_view text : texts_of(recipe)) {
    if (const std::string_view macro = time_macro(text); !macro.empty()) return std::string(macro);
  }
  return {};
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
