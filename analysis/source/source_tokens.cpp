// SPDX-License-Identifier: Apache-2.0
#include "analysis/source/source_tokens.hpp"

#include <algorithm>
#include <utility>

#include "backends/source_scan.hpp"

namespace kiln::source {
namespace {

using TokenKind = SourceToken::Kind;

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : text_(text) {}

  SourceTokens run() {
    bool line_start = true;
    for (;;) {
      line_start = skip_space(true) || line_start;
      if (at_ == text_.size()) break;
      if (line_start && text_[at_] == '#') {
        directive();
      } else {
        tokens_.code.push_back(token());
        line_start = false;
      }
    }
    link_brackets(tokens_.code);
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  void skip(std::size_t count) { at_ = std::min(at_ + count, text_.size()); }

  // Skips blanks, comments and joined lines. Returns whether it passed the end of a line.
  bool skip_space(bool across_lines) {
    bool passed = false;
    spaced_ = false;
    for (const std::size_t start = at_; at_ < text_.size(); spaced_ = at_ != start) {
      const char c = text_[at_];
      if (rest().starts_with("//")) {
        while (at_ < text_.size() && text_[at_] != '\n') skip(std::max<std::size_t>(joined_length(), 1));
      } else if (rest().starts_with("/*")) {
        at_ = std::min(text_.find("*/", at_ + 2), text_.size());
        skip(2);
      } else if (joined_length() != 0) {
        skip(joined_length());
      } else if (c == '\n' && across_lines) {
        passed = true;
        skip(1);
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
        skip(1);
      } else {
        return passed;
      }
    }
    return passed;
  }

  // Returns the length of a backslash and the line break after it, or 0.
  std::size_t joined_length() const { return rest().starts_with("\\\n") ? 2 : rest().starts_with("\\\r\n") ? 3 : 0; }

  void directive() {
    SourceTokens::Directive found;
    found.begin = at_;
    skip(1);
    for (skip_space(false); at_ < text_.size() && text_[at_] != '\n'; skip_space(false)) {
      found.tokens.push_back(token());
    }
    if (found.tokens.empty()) return;
    found.name = found.tokens.front().text;
    found.tokens.erase(found.tokens.begin());
    link_brackets(found.tokens);
    if (found.name.starts_with("if")) ++open_conditionals_;
    if (found.name == "endif" && open_conditionals_ > 0) --open_conditionals_;
    tokens_.directives.push_back(std::move(found));
  }

  SourceToken token() {
    SourceToken made{TokenKind::Other, {}, at_, spaced_, open_conditionals_ > 0};
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      made.kind = TokenKind::Literal;
      skip_quoted();
    } else if (is_word(c)) {
      made.kind = c >= '0' && c <= '9' ? TokenKind::Literal : TokenKind::Word;
      while (at_ < text_.size() && is_part_of_word(made.kind)) ++at_;
      const std::string_view word = text_.substr(made.begin, at_ - made.begin);
      const bool raw = word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R";
      if (raw && rest().starts_with('"')) {
        made.kind = TokenKind::Literal;
        skip_raw();
      }
    } else {
      skip(rest().starts_with("##") ? 2 : rest().starts_with("<<<") ? 3 : 1);
    }
    made.text = text_.substr(made.begin, at_ - made.begin);
    return made;
  }

  // A number can contain points and apostrophes.
  bool is_part_of_word(TokenKind kind) const {
    const char c = text_[at_];
    if (is_word(c)) return true;
    return kind == TokenKind::Literal && (c == '.' || (c == '\'' && at_ + 1 < text_.size() && is_word(text_[at_ + 1])));
  }

  // Skips a literal up to its closing quote, or to the end of the line if it has none.
  void skip_quoted() {
    const char quote = text_[at_];
    for (skip(1); at_ < text_.size() && text_[at_] != '\n'; skip(1)) {
      if (text_[at_] == quote) return skip(1);
      if (text_[at_] == '\\') skip(1);
    }
  }

  void skip_raw() {
    // A delimiter has at most 16 characters.
    const std::size_t open = text_.substr(0, at_ + 18).find('(', at_);
    if (open == std::string_view::npos) return skip_quoted();  // not a raw string
    const std::string end = ')' + std::string(text_.substr(at_ + 1, open - at_ - 1)) + '"';
    at_ = std::min(text_.find(end, open), text_.size());
    skip(end.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool spaced_ = false;
  unsigned open_conditionals_ = 0;
  SourceTokens tokens_;
};

}  // namespace

void link_brackets(TokenList& tokens) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == "(" || text == "[" || text == "{") open.push_back(i);
    if ((text != ")" && text != "]" && text != "}") || open.empty()) continue;
    tokens[open.back()].close = i;
    open.pop_back();
  }
}

SourceTokens tokenize(std::string_view text) { return Tokenizer(text).run(); }

std::string text_of(const TokenList& tokens, std::size_t first, std::size_t end) {
  std::string out;
  for (std::size_t i = first; i < end; ++i) {
    const bool spaced = tokens[i].spaced || (i > 0 && tokens[i].begin > tokens[i - 1].end());
    if (spaced && i != first) out += ' ';
    out += tokens[i].text;
  }
  return out;
}

std::size_t closing_angle(const TokenList& tokens, std::size_t open) {
  std::size_t depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == ";" || text == "{" || text == "}") return kNoToken;
    if (text == "(") i = std::min(tokens[i].close, tokens.size());
    if (text == "<") ++depth;
    if (text == ">" && --depth == 0) return i;
  }
  return kNoToken;
}

}  // namespace kiln::source
