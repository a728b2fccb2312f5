// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/split/macro_kernels.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace kiln::cli {
namespace {

constexpr unsigned kMaxNesting = 16;
constexpr std::size_t kMaxMacroInstances = 100'000;
constexpr std::size_t kMaxExpansions = 300'000;
constexpr std::size_t kMaxExpanded = 16 << 20;        // bytes for one macro call of the source
constexpr std::size_t kMaxExpandedInAll = 128 << 20;  // bytes
constexpr std::size_t kMaxNameSize = 4096;

bool is_attribute(std::string_view word) {
  return word == "__launch_bounds__" || word == "__cluster_dims__" || word == "__maxnreg__" ||
         word == "__block_size__" || word == "__attribute__";
}

}  // namespace

MacroKernels::Found MacroKernels::find(const MacroCall& call) {
  expanded_.clear();
  expanded_size_ = 0;
  return expand(call, 0);
}

// Returns the word that a macro such as CONCAT(a, b) expands to; empty if it is not one word.
std::string MacroKernels::expanded_word(const MacroCall& call) {
  for (const std::string& argument : call.arguments) {
    if (macros_.expands(argument)) return {};
  }
  std::optional<std::string> text = expand_call(call, kMaxNameSize);
  for (unsigned depth = 0; text && depth < kMaxNesting; ++depth) {
    expanded_size_in_all_ += text->size();
    if (text->size() > kMaxNameSize || expanded_size_in_all_ > kMaxExpandedInAll) return {};
    const SourceTokens tokens = tokenize(*text);
    if (tokens.code.size() == 1) return tokens.code.front().is_word() ? *text : std::string();
    const std::optional<MacroCall> next = tokens.code.empty() ? std::nullopt : macros_.call_at(*text, tokens.code, 0);
    if (!next || next->last + 1 != tokens.code.size()) return {};
    text = expand_call(*next, kMaxNameSize);
  }
  return {};
}

std::string MacroKernels::kernel_name(std::string_view text, const TokenList& tokens, std::size_t at) {
  for (std::size_t i = at + 1; i < tokens.size(); ++i) {
    if (tokens[i].text == "{" || tokens[i].text == ";") return {};
    if (is_attribute(tokens[i].text) && i + 1 < tokens.size() && tokens[i + 1].text == "(") {
      i = tokens[i + 1].close;
      if (i == kNoToken) return {};
      continue;
    }
    if (const std::optional<MacroCall> call = macros_.call_at(text, tokens, i)) {
      i = call->last;
      if (i + 1 < tokens.size() && tokens[i + 1].text == "(") return expanded_word(*call);
      continue;
    }
    if (tokens[i].is_word() && i + 1 < tokens.size() && tokens[i + 1].text == "<") {
      const std::size_t close = closing_angle(tokens, i + 1);
      if (close == kNoToken || close + 1 >= tokens.size()) return {};
      if (tokens[close + 1].text == "(") return text_of(tokens, i, close + 1);
      i = close;
      continue;
    }
    if (tokens[i].text == "(") return tokens[i - 1].is_word() ? std::string(tokens[i - 1].text) : std::string();
  }
  return {};
}

MacroKernels::Found MacroKernels::expand(const MacroCall& call, unsigned depth) {
  const std::string name(call.name);
  std::optional<std::string> body = expand_call(call, kMaxExpanded - expanded_size_);
  const bool is_open = std::find(open_.begin(), open_.end(), call.macro) != open_.end();
  if (!body || depth > kMaxNesting || is_open) return {};
  expanded_size_ += body->size();
  expanded_size_in_all_ += body->size();
  if (expanded_size_ > kMaxExpanded || expanded_size_in_all_ > kMaxExpandedInAll || ++expansions_ > kMaxExpansions) {
    expanded_size_ = kMaxExpanded;
    return {{}, "macro " + name + " is too large"};
  }
  expanded_.push_back(std::move(*body));
  const std::string_view text = expanded_.back();
  const SourceTokens inner = tokenize(text);
  const TokenList& tokens = inner.code;
  const auto is_kernel = [&](const SourceToken& token) { return macros_.is_kernel_word(token.text); };
  const auto count = std::count_if(tokens.begin(), tokens.end(), is_kernel);
  open_.push_back(call.macro);
  Found result = count == 0 ? expand_list(text, tokens, depth + 1) : Found();
  open_.pop_back();
  const bool has_kernels = count != 0 || !result.instances.empty();
  if (has_kernels && call.macro->is_redefined) return {{}, "macro " + name + " has several definitions"};
  const auto expands = [&](const std::string& argument) { return macros_.expands(argument); };
  if (count == 0 && has_kernels && std::any_of(call.arguments.begin(), call.arguments.end(), expands)) {
    return {{}, "an argument of macro " + name + " is a macro"};
  }
  if (count == 0) return result;
  if (count > 1) {
    return {{}, "macro " + name + " defines " + std::to_string(count) + " kernels; an instance has one"};
  }
  const auto at = static_cast<std::size_t>(std::find_if(tokens.begin(), tokens.end(), is_kernel) - tokens.begin());
  for (std::size_t i = 0; i + 1 < at; ++i) {
    if (tokens[i].text == "template" && tokens[i + 1].text == "<") return {{}, "macro " + name + " defines a template"};
  }
  const std::string entry = kernel_name(text, tokens, at);
  if (entry.empty()) {
    return {{}, "the kernel's name in macro " + name + " was not found"};
  }
  if (const std::string problem = other_code(tokens, at, entry); !problem.empty()) {
    return {{}, "macro " + name + ' ' + problem};
  }
  return {{{entry, std::string(call.text) + '\n', name, 0}}, {}};
}

// Returns how the text of a macro with a kernel word at index `at` differs from the definition or instantiation of one
// kernel; empty if it does not. Other declarations would be missing in the other instances.
std::string MacroKernels::other_code(const TokenList& tokens, std::size_t at, const std::string& entry) const {
  std::size_t body = at;
  while (body < tokens.size() && tokens[body].text != "{" && tokens[body].text != ";") {
    body = tokens[body].close == kNoToken ? body + 1 : tokens[body].close + 1;
  }
  const bool instantiates = tokens.front().text == "template" && entry.find('<') != std::string::npos;
  if (body >= tokens.size() || tokens[body].text != (instantiates ? ";" : "{") ||
      (!instantiates && tokens[body].close == kNoToken)) {
    return "does not define the whole kernel";
  }
  const std::size_t last = instantiates ? body : tokens[body].close;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    const bool inside = i >= body && i <= last;
    if (!inside && (text == "{" || text == "}" || (text == ";" && i < at) || macros_.has_statements(text) ||
                    (i > last && text != ";"))) {
      return "defines a kernel and other code";
    }
    if (macros_.brace_balance(text) != 0) return "contains a macro with half of a block";
  }
  return {};
}

// Returns the kernels of a text that consists of macro calls.
MacroKernels::Found MacroKernels::expand_list(std::string_view body, const TokenList& tokens, unsigned depth) {
  Found all;
  bool has_other_code = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::optional<MacroCall> call = macros_.call_at(body, tokens, i);
    has_other_code = has_other_code || (!call && tokens[i].text != ";");
    if (!call) continue;
    Found one = expand(*call, depth);
    if (!one.problem.empty()) return one;
    has_other_code = has_other_code || one.instances.empty();
    if (all.instances.size() + one.instances.size() > kMaxMacroInstances) return {{}, "a macro has too many kernels"};
    std::move(one.instances.begin(), one.instances.end(), std::back_inserter(all.instances));
    i = call->last;
  }
  if (has_other_code && !all.instances.empty()) return {{}, "a macro contains kernels and other code"};
  return all;
}

}  // namespace kiln::cli
