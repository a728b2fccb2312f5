// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "analysis/source/source_tokens.hpp"

namespace kiln::source {

/// A logical line of Python: the tokens of one or more lines that brackets, a backslash or a string join.
struct PythonLine {
  std::size_t indent = 0;  ///< in columns; a tab ends at a multiple of 8
  std::size_t first = 0;   ///< index of the first token
  std::size_t end = 0;     ///< index after the last token
};

struct PythonTokens {
  TokenList tokens;  ///< without comments; the code in an f-string follows the string's token, in braces
  std::vector<PythonLine> lines;
};

/// Splits a Python source into tokens. Accepts arbitrary bytes. The text must outlive the tokens.
PythonTokens tokenize_python(std::string_view text);

}  // namespace kiln::source
