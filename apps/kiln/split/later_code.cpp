// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/split/later_code.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace kiln::cli {
namespace {

constexpr unsigned kMaxMacroDepth = 8;
constexpr std::size_t kMaxLaterText = 64 << 10;

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Words that can precede a parenthesis in a declaration without being its name.
bool is_specifier(std::string_view word) {
  static constexpr std::array<std::string_view, 10> kWords = {
      "alignas",  "__align__",     "__attribute__", "__declspec", "decltype",
      "noexcept", "static_assert", "requires",      "explicit",   "__launch_bounds__"};
  return is_one_of(word, kWords);
}

// Finds the later code of one source. Not thread-safe.
class LaterCodeFinder {
 public:
  LaterCodeFinder(const MacroTable& macros, const FirstUses& words, const std::vector<SourceRange>& instances)
      : macros_(macros), words_(words), instances_(instances) {}

  void check(const SourceTokens::Directive& directive);
  void check(std::string_view text, const TokenList& tokens, std::optional<std::size_t> at, unsigned depth);
  std::optional<LaterCode> take() { return std::move(found_); }

 private:
  // The first instance that ends after an offset.
  auto instance_after(std::size_t at) const {
    return std::upper_bound(instances_.begin(), instances_.end(), at,
                            [](std::size_t offset, const SourceRange& range) { return offset < range.end; });
  }
  // Returns true if an instance could use the word that is declared at this offset.
  bool is_used_before(std::string_view word, std::size_t at) const {
    const auto next = instance_after(at);
    const auto use = words_.find(word);
    return next != instances_.begin() && use != words_.end() && use->second < std::prev(next)->end;
  }
  void report(std::size_t at, const std::string& what) {
    if (found_ && found_->at <= at) return;
    found_ = {at, what + " follows an instance and could change its meaning; move it before the instances"};
  }
  std::size_t check_word(std::string_view text, const TokenList& tokens, std::size_t i, std::size_t at, unsigned depth);

  const MacroTable& macros_;
  const FirstUses& words_;
  const std::vector<SourceRange>& instances_;
  bool in_kernel_ = false;  // the declaration is that of a kernel, which no instance calls
  std::size_t expanded_ = 0;
  std::optional<LaterCode> found_;
};

void LaterCodeFinder::check(const SourceTokens::Directive& directive) {
  if (directive.begin < instances_.front().begin) return;
  static constexpr std::array<std::string_view, 11> kHarmless = {
      "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif", "error", "warning", "line"};
  const std::string_view word = directive.tokens.empty() ? std::string_view() : directive.tokens.front().text;
  const std::string name = '#' + std::string(directive.name);
  if (directive.name == "define" || directive.name == "undef") {
    if (is_used_before(word, directive.begin)) report(directive.begin, name + ' ' + std::string(word));
  } else if (directive.name == "pragma") {
    if (word != "unroll" && word != "nounroll" && word != "once") report(directive.begin, name);
  } else if (!is_one_of(directive.name, kHarmless)) {
    report(directive.begin, name);
  }
}

// Checks the tokens of namespaces, without bodies. `at` is the offset in the source if the text is that of a macro.
void LaterCodeFinder::check(std::string_view text, const TokenList& tokens, std::optional<std::size_t> at,
                            unsigned depth) {
  std::size_t start = 0;  // of the declaration
  for (std::size_t i = 0; i < tokens.size() && !found_; ++i) {
    const std::size_t offset = at ? *at : tokens[i].begin;
    if (offset < instances_.front().begin) {
      start = tokens[i].text == ";" || tokens[i].text == "}" ? i + 1 : start;
      continue;
    }
    if (const auto next = instance_after(offset); !at && next != instances_.end() && next->begin <= offset) {
      start = i + 1;
      continue;
    }
    const std::string_view word = tokens[i].text;
    if (word == ";" || word == "}") {
      start = i + 1;
      in_kernel_ = false;
    } else if (word == "{") {
      const std::size_t first = start + (tokens[start].text == "inline" ? 1 : 0);
      const bool encloses = tokens[first].text == "namespace" || (tokens[first].text == "extern" && first + 2 == i);
      if (!encloses) i = std::min(tokens[i].close, tokens.size() - 1);
      start = i + 1;
      in_kernel_ = false;
    } else if (word == "(" || word == "[") {
      i = std::min(tokens[i].close, tokens.size() - 1);
    } else if (word == "=") {
      while (i + 1 < tokens.size() && tokens[i + 1].text != ";") {
        ++i;
        if (tokens[i].close != kNoToken) i = tokens[i].close;
      }
    } else if (tokens[i].is_word()) {
      i = check_word(text, tokens, i, offset, depth);
    }
  }
}

// Returns the index of the last token that it handled.
std::size_t LaterCodeFinder::check_word(std::string_view text, const TokenList& tokens, std::size_t i, std::size_t at,
                                        unsigned depth) {
  const std::string_view word = tokens[i].text;
  const std::string_view next = i + 1 < tokens.size() ? tokens[i + 1].text : std::string_view();
  if (macros_.is_kernel_word(word)) in_kernel_ = true;
  if (const std::optional<MacroCall> call = macros_.call_at(text, tokens, i)) {
    const std::optional<std::string> body = expand_call(*call, kMaxLaterText);
    expanded_ += body ? body->size() : 0;
    if (!body || body->size() > kMaxLaterText || depth == kMaxMacroDepth || expanded_ > (kMaxLaterText << 10)) {
      report(at, "macro " + std::string(word));
    } else {
      check(*body, tokenize(*body).code, at, depth + 1);
    }
    return call->last;
  }
  if (word == "template" && next == "<") {
    const std::size_t close = closing_angle(tokens, i + 1);
    return close == kNoToken ? i : close;
  }
  const bool in_scope = i + 2 < tokens.size() && next == ":" && tokens[i + 2].text == ":";
  const bool is_name = !in_scope &&
                       (next == "(" || next == "=" || next == ";" || next == "[" || next == "{" || next == ":") &&
                       !is_specifier(word);
  const bool opens_namespace = i > 0 && tokens[i - 1].text == "namespace" && next == "{";
  if (word == "operator" || word == "_Pragma" || (word == "using" && next == "namespace")) {
    report(at, std::string(word) + (word == "using" ? " namespace" : ""));
  } else if (is_name && !in_kernel_ && !opens_namespace && is_used_before(word, at)) {
    report(at, "a declaration of '" + std::string(word) + "'");
  }
  return i;
}

}  // namespace

void add_words(FirstUses& words, const SourceTokens& source, bool is_header) {
  const auto add = [&](const SourceToken& token) {
    if (!token.is_word()) return;
    const std::size_t at = is_header ? 0 : token.begin;
    const auto known = words.try_emplace(token.text, at).first;
    known->second = std::min(known->second, at);
  };
  std::for_each(source.code.begin(), source.code.end(), add);
  for (const SourceTokens::Directive& directive : source.directives) {
    std::for_each(directive.tokens.begin(), directive.tokens.end(), add);
  }
}

std::optional<LaterCode> find_later_code(std::string_view text, const SourceTokens& source, const MacroTable& macros,
                                         const FirstUses& words, const std::vector<SourceRange>& instances) {
  if (instances.empty()) return std::nullopt;
  LaterCodeFinder finder(macros, words, instances);
  for (const SourceTokens::Directive& directive : source.directives) finder.check(directive);
  finder.check(text, source.code, std::nullopt, 0);
  return finder.take();
}

}  // namespace kiln::cli
