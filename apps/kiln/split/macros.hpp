#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/kiln/split/source_tokens.hpp"

namespace kiln::cli {

/// A function-like macro.
struct Macro {
  std::vector<std::string_view> parameters;  ///< the last one is __VA_ARGS__ if the macro accepts any number
  TokenList body;
  bool is_redefined = false;  ///< the sources define it with different bodies
};

/// A call of a function-like macro.
struct MacroCall {
  std::string_view name;
  std::vector<std::string_view> arguments;
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

 private:
  void add_function(const TokenList& tokens);

  std::set<std::string_view> kernel_words_;
  std::map<std::string_view, Macro> macros_;
};

/// Returns the body of the macro with its arguments. Macros in the result are not expanded. Returns nothing if the
/// number of arguments is wrong.
std::optional<std::string> expand_call(const MacroCall& call);

}  // namespace kiln::cli
