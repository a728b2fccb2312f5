// SPDX-License-Identifier: Apache-2.0
#include "analysis/source/python_tokens.hpp"

#include <algorithm>
#include <utility>

#include "backends/source_scan.hpp"

namespace kiln::source {
namespace {

bool is_prefix(std::string_view word) {
  return word.size() <= 2 && word.find_first_not_of("rRbBuUfFtT") == std::string_view::npos;
}

/// A tokenizer of Python. Not thread-safe.
class PythonTokenizer {
 public:
  explicit PythonTokenizer(std::string_view text) : text_(text) {}

  PythonTokens run() {
    while (at_ < text_.size()) {
      begin_line();
      code(text_.size());
      end_line();
    }
    link_brackets(out_.tokens);
    return std::move(out_);
  }

 private:
  static constexpr unsigned kMaxNesting = 8;  // of f-strings

  std::string_view rest() const { return text_.substr(at_); }
  void skip(std::size_t count) { at_ = std::min(at_ + count, text_.size()); }
  std::size_t joined_length() const { return rest().starts_with("\\\n") ? 2 : rest().starts_with("\\\r\n") ? 3 : 0; }

  void begin_line() {
    line_ = {0, out_.tokens.size(), 0};
    brackets_ = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == ' ') {
        ++line_.indent;
      } else if (c == '\t') {
        line_.indent += 8 - line_.indent % 8;
      } else {
        break;
      }
    }
  }
  void end_line() {
    line_.end = out_.tokens.size();
    if (line_.end > line_.first) out_.lines.push_back(line_);
  }

  // Adds tokens up to the end of the logical line, or up to `end` in an f-string.
  void code(std::size_t end) {
    bool spaced = false;
    while (at_ < end) {
      const char c = text_[at_];
      if (c == '\n') {
        skip(1);
        if (brackets_ == 0 && fields_ == 0) return;
        spaced = true;
      } else if (c == '#') {
        at_ = std::min(text_.substr(0, end).find('\n', at_), end);
      } else if (joined_length() != 0 || c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        skip(std::max<std::size_t>(joined_length(), 1));
        spaced = true;
      } else {
        token(spaced);
        spaced = false;
      }
    }
  }

  void token(bool spaced) {
    SourceToken made{SourceToken::Kind::Other, {}, at_, spaced};
    const char c = text_[at_];
    bool fields = false;
    if (is_word(c) || static_cast<unsigned char>(c) >= 0x80) {
      made.kind = c >= '0' && c <= '9' ? SourceToken::Kind::Literal : SourceToken::Kind::Word;
      while (at_ < text_.size() && continues(made.kind)) ++at_;
      const std::string_view word = text_.substr(made.begin, at_ - made.begin);
      if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'') && is_prefix(word)) {
        made.kind = SourceToken::Kind::Literal;
        fields = word.find_first_of("fFtT") != std::string_view::npos;
        skip_string();
      }
    } else if (c == '"' || c == '\'') {
      made.kind = SourceToken::Kind::Literal;
      skip_string();
    } else {
      if (c == '(' || c == '[' || c == '{') ++brackets_;
      if ((c == ')' || c == ']' || c == '}') && brackets_ > 0) --brackets_;
      skip(1);
    }
    made.text = text_.substr(made.begin, at_ - made.begin);
    out_.tokens.push_back(made);
    if (fields && fields_ < kMaxNesting) add_fields(made.begin, at_);
  }
  bool continues(SourceToken::Kind kind) const {
    const char c = text_[at_];
    return is_word(c) || static_cast<unsigned char>(c) >= 0x80 || (kind == SourceToken::Kind::Literal && c == '.');
  }

  // Skips a string up to its closing quotes; one without triple quotes ends with its line at the latest.
  void skip_string() {
    const char quote = text_[at_];
    const bool triple = rest().size() >= 3 && text_[at_ + 1] == quote && text_[at_ + 2] == quote;
    for (skip(triple ? 3 : 1); at_ < text_.size(); skip(1)) {
      const char c = text_[at_];
      if (c == '\\') {
        skip(1);
      } else if (c == '\n' && !triple) {
        return;
      } else if (c == quote &&
                 (!triple || (rest().size() >= 3 && text_[at_ + 1] == quote && text_[at_ + 2] == quote))) {
        return skip(triple ? 3 : 1);
      }
    }
  }

  // Adds the tokens of the replacement fields `{…}` of an f-string.
  void add_fields(std::size_t begin, std::size_t end) {
    const std::size_t brackets = std::exchange(brackets_, 0);
    ++fields_;
    for (std::size_t i = begin; i < end; ++i) {
      if (text_[i] != '{') continue;
      if (i + 1 < end && text_[i + 1] == '{') {
        ++i;
        continue;
      }
      const std::size_t close = std::min(text_.substr(0, end).find('}', i), end);
      mark(i, 1);
      at_ = i + 1;
      code(close);
      mark(close, close < end ? 1 : 0);
      i = std::max(close, at_ - 1);
    }
    --fields_;
    brackets_ = brackets;
    at_ = end;
  }
  void mark(std::size_t at, std::size_t length) {
    if (length != 0) out_.tokens.push_back({SourceToken::Kind::Other, text_.substr(at, length), at});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t brackets_ = 0;
  unsigned fields_ = 0;
  PythonLine line_;
  PythonTokens out_;
};

}  // namespace

PythonTokens tokenize_python(std::string_view text) { return PythonTokenizer(text).run(); }

}  // namespace kiln::source
