// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/split/macros.hpp"

#include <algorithm>

#include "backends/source_scan.hpp"

namespace kiln::cli {
namespace {

constexpr std::string_view kRest = "__VA_ARGS__";
constexpr std::size_t kMaxParameters = 256;

bool equal_tokens(const TokenList& a, const TokenList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SourceToken& one, const SourceToken& other) { return one.text == other.text; });
}

// Returns true if two texts that the preprocessor keeps apart would be one token without a blank.
bool would_join(std::string_view before, std::string_view after) {
  constexpr std::string_view kOperators = "+-*/%&|^=!<>:.#";
  const auto is_quote = [](char c) { return c == '"' || c == '\''; };
  if (before.empty() || after.empty()) return false;
  const char a = before.back();
  const char b = after.front();
  if (is_word(a) || is_quote(a)) return is_word(b) || is_quote(b);
  return kOperators.find(a) != std::string_view::npos && kOperators.find(b) != std::string_view::npos;
}

std::string stringized(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Returns the argument of a parameter, or null if the word is not a parameter.
const std::string* find_argument(const Macro& macro, const std::vector<std::string>& arguments, std::string_view word) {
  const auto at = std::find(macro.parameters.begin(), macro.parameters.end(), word);
  return at == macro.parameters.end() ? nullptr : &arguments[static_cast<std::size_t>(at - macro.parameters.begin())];
}

// Returns one argument per parameter.
std::optional<std::vector<std::string>> bind_arguments(const MacroCall& call) {
  const std::size_t count = call.macro->parameters.size();
  std::vector<std::string> bound = call.arguments;
  if (count == 0 && bound.size() == 1 && bound.front().empty()) bound.clear();
  if (call.macro->is_variadic && bound.size() + 1 >= count) {
    std::string rest;
    for (std::size_t i = count - 1; i < bound.size(); ++i) rest += (i >= count ? ", " : "") + bound[i];
    bound.resize(count);
    bound.back() = std::move(rest);
  }
  if (bound.size() != count) return std::nullopt;
  return bound;
}

}  // namespace

void MacroTable::add(const SourceTokens& source) {
  for (const SourceTokens::Directive& directive : source.directives) {
    const TokenList& tokens = directive.tokens;
    if (directive.name != "define" || tokens.empty()) continue;
    if (tokens.size() > 1 && tokens[1].text == "(" && !tokens[1].spaced) {
      add_function(tokens);
      continue;
    }
    objects_.insert(tokens.front().text);
    add_shape(tokens.front().text, tokens, 1);
    if (std::any_of(tokens.begin() + 1, tokens.end(),
                    [&](const SourceToken& token) { return is_kernel_word(token.text); })) {
      kernel_words_.insert(tokens.front().text);
    }
  }
}

// Records the braces and semicolons of a macro whose body starts at index `body`.
void MacroTable::add_shape(std::string_view name, const TokenList& tokens, std::size_t body) {
  int balance = 0;
  for (std::size_t i = body; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == "{" || text == "}" || text == ";" || has_statements(text)) statements_.insert(name);
    balance += text == "{" ? 1 : text == "}" ? -1 : std::clamp(brace_balance(text), -1, 1);
  }
  if (balance != 0) balances_[name] = balance;
}

void MacroTable::add_function(const TokenList& tokens) {
  const std::size_t close = tokens[1].close;
  if (close == kNoToken) return;
  Macro macro;
  for (std::size_t i = 2; i < close; ++i) {
    if (tokens[i].is_word()) macro.parameters.push_back(tokens[i].text);
    if (tokens[i].text != "." || macro.is_variadic) continue;
    macro.is_variadic = true;
    if (!tokens[i - 1].is_word()) macro.parameters.push_back(kRest);
  }
  if (macro.parameters.size() > kMaxParameters) return;
  macro.body.assign(tokens.begin() + static_cast<std::ptrdiff_t>(close) + 1, tokens.end());
  add_shape(tokens.front().text, tokens, close + 1);
  const auto [at, is_new] = macros_.try_emplace(tokens.front().text, macro);
  Macro& known = at->second;
  if (!is_new && (known.parameters != macro.parameters || known.is_variadic != macro.is_variadic ||
                  !equal_tokens(known.body, macro.body))) {
    known.is_redefined = true;
  }
}

int MacroTable::brace_balance(std::string_view word) const {
  const auto at = balances_.find(word);
  return at == balances_.end() ? 0 : at->second;
}

bool MacroTable::expands(std::string_view text) const {
  const TokenList tokens = tokenize(text).code;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (objects_.count(tokens[i].text) != 0) return true;
    if (i + 1 < tokens.size() && tokens[i + 1].text == "(" && macros_.count(tokens[i].text) != 0) return true;
  }
  return false;
}

std::optional<MacroCall> MacroTable::call_at(std::string_view text, const TokenList& tokens, std::size_t at) const {
  const auto found = macros_.find(tokens[at].text);
  if (found == macros_.end() || at + 1 >= tokens.size() || tokens[at + 1].text != "(") return std::nullopt;
  const std::size_t close = tokens[at + 1].close;
  if (close == kNoToken || tokens[close].text != ")") return std::nullopt;
  MacroCall call{tokens[at].text,
                 {},
                 text.substr(tokens[at].begin, tokens[close].end() - tokens[at].begin),
                 close,
                 &found->second};
  std::size_t start = at + 2;
  for (std::size_t i = at + 2; i <= close; ++i) {
    if (tokens[i].text == "(") i = tokens[i].close;
    if (i > close) return std::nullopt;
    if (tokens[i].text != "," && i != close) continue;
    call.arguments.push_back(text_of(tokens, start, i));
    start = i + 1;
  }
  return call;
}

std::optional<std::string> expand_call(const MacroCall& call, std::size_t limit) {
  const std::optional<std::vector<std::string>> arguments = bind_arguments(call);
  if (!arguments) return std::nullopt;
  const TokenList& body = call.macro->body;
  std::string out;
  bool after_argument = false;
  for (std::size_t i = 0; i < body.size() && out.size() <= limit; ++i) {
    if (body[i].text == "__VA_OPT__") return std::nullopt;
    if (body[i].text == "##") {
      // An extension: a comma before it is removed if there are no further arguments.
      if (i > 0 && body[i - 1].text == "," && call.macro->is_variadic) return std::nullopt;
      continue;
    }
    const bool pasted = i > 0 && body[i - 1].text == "##";
    const std::string* argument = find_argument(*call.macro, *arguments, body[i].text);
    std::string text(argument != nullptr ? std::string_view(*argument) : body[i].text);
    const bool spaced = body[i].spaced;
    if (body[i].text == "#" && i + 1 < body.size()) {
      const std::string* named = find_argument(*call.macro, *arguments, body[i + 1].text);
      if (named != nullptr) text = stringized(*named);
      if (named != nullptr) ++i;
    }
    const bool joins = (after_argument || argument != nullptr) && would_join(out, text);
    if (!pasted && !out.empty() && (spaced || joins)) out += ' ';
    after_argument = argument != nullptr;
    out += text;
  }
  return out;
}

}  // namespace kiln::cli
