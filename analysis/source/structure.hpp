// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/source/source_tokens.hpp"

// The functions, loops and statements of a source. Private to the search for rails.
namespace kiln::source {

enum class Language : unsigned char { Cuda, Python };

/// A function of a source. The first function of every source is the code outside of functions.
struct Function {
  std::string name;     ///< empty outside of functions
  bool device = false;  ///< true if it runs on the device only, so that no rail applies
};

/// The position of a token.
struct Place {
  std::uint32_t function = 0;  ///< index
  std::uint16_t loops = 0;     ///< number of loops of the function that enclose the token
};

/// A range of tokens: from `first` to before `end`.
struct TokenRange {
  std::size_t first = 0;
  std::size_t end = 0;
};

/// A loop: the tokens that decide how often it runs.
struct Loop {
  TokenRange range;
  std::size_t at = 0;       ///< index of `for` or `while`
  std::uint16_t loops = 0;  ///< number of loops including this one
};

/// The number of tokens that a search within one expression looks at, so that nested expressions cost linear time.
inline constexpr std::size_t kMaxExpression = 512;

struct Structure {
  Language language = Language::Cuda;
  TokenList tokens;
  std::vector<Place> places;  ///< of each token
  std::vector<Function> functions;
  std::vector<Loop> loops;
  std::vector<TokenRange> statements;

  bool is(std::size_t at, std::string_view text) const { return at < tokens.size() && tokens[at].text == text; }
  bool is_word(std::size_t at) const { return at < tokens.size() && tokens[at].is_word(); }
  /// Returns whether the token is the name of a member: it follows `.` or `->`.
  bool is_member(std::size_t at) const {
    return at > 0 && (is(at - 1, ".") || (at > 1 && is(at - 1, ">") && is(at - 2, "-") && !tokens[at - 1].spaced));
  }
  /// Returns whether the token is an `=` that assigns.
  bool is_assignment(std::size_t at) const;
  /// Returns the index of the opening parenthesis if the word at `at` is called, also with template arguments; kNoToken
  /// otherwise.
  std::size_t call_of(std::size_t at) const;
  /// Returns the arguments of the bracket at `open`. An unclosed bracket has none.
  std::vector<TokenRange> arguments_of(std::size_t open) const;
  /// Splits a range at the commas that are not in brackets.
  std::vector<TokenRange> split(TokenRange range) const;
  /// Returns the index of the `>` that closes the `<` at `open`; kNoToken if there is none within a few tokens.
  std::size_t close_of_angle(std::size_t open) const;
  /// Returns whether a word is in the first tokens of the range.
  bool has_word(TokenRange range, std::string_view word) const;
};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Return the structure of a source of the C family or of Python. They accept arbitrary bytes; the text must outlive
/// the structure.
Structure structure_of_cuda(std::string_view text);
Structure structure_of_python(std::string_view text);

/// Returns the content of a string literal without prefix and quotes; empty for other tokens.
std::string_view string_content(const SourceToken& token);

}  // namespace kiln::source
