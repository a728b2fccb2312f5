// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::source {

inline constexpr std::size_t kNoToken = static_cast<std::size_t>(-1);

/// A token of a source of the C family. The text is a view into the source.
struct SourceToken {
  enum class Kind : unsigned char { Word, Literal, Other };

  Kind kind = Kind::Other;
  std::string_view text;
  std::size_t begin = 0;         ///< offset in the source
  bool spaced = false;           ///< whether blanks or a comment precede it
  bool conditional = false;      ///< whether an #if encloses it
  std::size_t close = kNoToken;  ///< of a bracket: index of the bracket that closes it in the same list

  std::size_t end() const { return begin + text.size(); }
  bool is_word() const { return kind == Kind::Word; }
};

using TokenList = std::vector<SourceToken>;

/// The tokens of a source without comments. Lines that a backslash joins are one line; a word that it splits counts as
/// two. The text must outlive the tokens.
struct SourceTokens {
  /// A preprocessor directive: its name, such as "define", and the tokens after it.
  struct Directive {
    std::string_view name;
    TokenList tokens;
    std::size_t begin = 0;  ///< offset in the source
  };

  TokenList code;  ///< without directives
  std::vector<Directive> directives;
};

/// Sets `close` of every opening bracket in the list.
void link_brackets(TokenList& tokens);

/// Splits a source into tokens. Accepts arbitrary bytes.
SourceTokens tokenize(std::string_view text);

/// Returns the tokens from index `first` to before `end` as text without comments and with single blanks.
std::string text_of(const TokenList& tokens, std::size_t first, std::size_t end);
/// Returns the index of the `>` that closes the `<` at index `open`; kNoToken if the statement ends before.
std::size_t closing_angle(const TokenList& tokens, std::size_t open);

}  // namespace kiln::source
