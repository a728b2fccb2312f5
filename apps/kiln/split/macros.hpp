// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/source/source_tokens.hpp"

namespace kiln::cli {

using source::closing_angle;
using source::kNoToken;
using source::SourceToken;
using source::SourceTokens;
using source::tokenize;
using source::TokenList;

/// A function-like macro.
struct Macro {
  std::vector<std::string_view> parameters;
  bool is_variadic = false;  ///< the last parameter stands for any number of arguments
  TokenList body;
  bool is_redefined = false;  ///< the sources define it in different ways
};

/// A call of a function-like macro.
struct MacroCall {
  std::string_view name;
  std::vector<std::string> arguments;
  std::string_view text;  ///< the whole call
  std::size_t last = 0;   ///< index of its closing parenthesis
  const Macro* macro = nullptr;
};

/// The macros that sources define. Conditional definitions count. Not thread-safe.
class MacroTable {
 public:
  /// `kernel_words` are the words that mark a kernel, such as __global__.
  explicit MacroTable(std::set<std::string_view> kernel_words) : kernel_words_(std::move(kernel_words)) {}

  /// Adds the definitions of a source, whose text must outlive the table.
  void add(const SourceTokens& source);
  /// Returns the call of a known macro at this token of `text`, or nothing.
  std::optional<MacroCall> call_at(std::string_view text, const TokenList& tokens, std::size_t at) const;
  /// Returns true for a word that marks a kernel: one of the given words or a macro that contains one.
  bool is_kernel_word(std::string_view word) const { return kernel_words_.count(word) != 0; }
  /// Returns true if a macro of this name can expand to a brace or a semicolon.
  bool has_statements(std::string_view word) const { return statements_.count(word) != 0; }
  /// Returns how many more braces a macro of this name opens than it closes.
  int brace_balance(std::string_view word) const;
  /// Returns true if the text contains a macro that the preprocessor expands.
  bool expands(std::string_view text) const;

 private:
  void add_function(const TokenList& tokens);
  void add_shape(std::string_view name, const TokenList& tokens, std::size_t body);

  std::set<std::string_view> kernel_words_;
  std::map<std::string_view, Macro> macros_;
  std::set<std::string_view> objects_;  // macros without parameters
  std::set<std::string_view> statements_;
  std::map<std::string_view, int> balances_;  // those that are not 0
};

/// Returns the body of the macro with its arguments. Macros in the result are not expanded. Stops when the text is
/// longer than `limit`. Returns nothing if the number of arguments is wrong or the body has a form that is not
/// supported.
std::optional<std::string> expand_call(const MacroCall& call, std::size_t limit);

}  // namespace kiln::cli
