#include "apps/kiln/split/macros.hpp"

#include <algorithm>

namespace kiln::cli {
namespace {

constexpr std::string_view kRest = "__VA_ARGS__";

bool equal_tokens(const TokenList& a, const TokenList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SourceToken& one, const SourceToken& other) { return one.text == other.text; });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v\\";
  const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
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
  const std::vector<std::string_view>& parameters = call.macro->parameters;
  std::vector<std::string> bound(call.arguments.begin(), call.arguments.end());
  if (parameters.empty() && bound.size() == 1 && bound.front().empty()) bound.clear();
  if (!parameters.empty() && parameters.back() == kRest) {
    std::string rest;
    for (std::size_t i = parameters.size() - 1; i < bound.size(); ++i) rest += (rest.empty() ? "" : ", ") + bound[i];
    if (bound.size() + 1 < parameters.size()) return std::nullopt;
    bound.resize(parameters.size());
    bound.back() = rest;
  }
  if (bound.size() != parameters.size()) return std::nullopt;
  return bound;
}

}  // namespace

void MacroTable::add(const SourceTokens& source) {
  for (const SourceTokens::Directive& directive : source.directives) {
    const TokenList& tokens = directive.tokens;
    if (directive.name != "define" || tokens.empty()) continue;
    if (tokens.size() > 1 && tokens[1].text == "(" && !tokens[1].spaced) {
      add_function(tokens);
    } else if (std::any_of(tokens.begin() + 1, tokens.end(),
                           [&](const SourceToken& token) { return is_kernel_word(token.text); })) {
      kernel_words_.insert(tokens.front().text);
    }
  }
}

void MacroTable::add_function(const TokenList& tokens) {
  const std::size_t close = closing_bracket(tokens, 1);
  if (close == kNoToken) return;
  Macro macro;
  for (std::size_t i = 2; i < close; ++i) {
    if (tokens[i].is_word()) macro.parameters.push_back(tokens[i].text);
    if (tokens[i].text == "." && (macro.parameters.empty() || macro.parameters.back() != kRest)) {
      macro.parameters.push_back(kRest);
    }
  }
  macro.body.assign(tokens.begin() + static_cast<std::ptrdiff_t>(close) + 1, tokens.end());
  const auto [at, is_new] = macros_.try_emplace(tokens.front().text, macro);
  if (!is_new && !equal_tokens(at->second.body, macro.body)) at->second.is_redefined = true;
}

std::optional<MacroCall> MacroTable::call_at(std::string_view text, const TokenList& tokens, std::size_t at) const {
  const auto found = macros_.find(tokens[at].text);
  if (found == macros_.end() || at + 1 >= tokens.size() || tokens[at + 1].text != "(") return std::nullopt;
  const std::size_t close = closing_bracket(tokens, at + 1);
  if (close == kNoToken) return std::nullopt;
  MacroCall call{tokens[at].text,
                 {},
                 text.substr(tokens[at].begin, tokens[close].end() - tokens[at].begin),
                 close,
                 &found->second};
  std::size_t start = tokens[at + 1].end();
  for (std::size_t i = at + 2; i <= close; ++i) {
    if (tokens[i].text == "(" || tokens[i].text == "[" || tokens[i].text == "{") i = closing_bracket(tokens, i);
    if (i > close) return std::nullopt;
    if (tokens[i].text != "," && i != close) continue;
    call.arguments.push_back(trimmed(text.substr(start, tokens[i].begin - start)));
    start = tokens[i].end();
  }
  return call;
}

std::optional<std::string> expand_call(const MacroCall& call) {
  const std::optional<std::vector<std::string>> arguments = bind_arguments(call);
  if (!arguments) return std::nullopt;
  const TokenList& body = call.macro->body;
  std::string out;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i].text == "##") continue;
    const bool pasted = i > 0 && body[i - 1].text == "##";
    if (body[i].spaced && !pasted && !out.empty()) out += ' ';
    const std::string* argument = find_argument(*call.macro, *arguments, body[i].text);
    const std::string* text =
        body[i].text == "#" && i + 1 < body.size() ? find_argument(*call.macro, *arguments, body[i + 1].text) : nullptr;
    if (text != nullptr) {
      out += stringized(*text);
      ++i;
    } else {
      out += argument != nullptr ? std::string_view(*argument) : body[i].text;
    }
  }
  return out;
}

}  // namespace kiln::cli
