// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/source/source_tokens.hpp"
#include "apps/kiln/split/macros.hpp"

namespace kiln::cli {

/// A range of bytes of a source.
struct SourceRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Words and the offset of their first use in a source; 0 for a word of a header.
using FirstUses = std::unordered_map<std::string_view, std::size_t>;

void add_words(FirstUses& words, const SourceTokens& source, bool is_header);

/// Code after an instance that could give the instance another meaning if the instance were at the end of the file.
struct LaterCode {
  std::size_t at = 0;  ///< offset in the source
  std::string reason;
};

/// Looks for such code: a directive or declaration that concerns a name that occurs before an instance, an #include, a
/// #pragma, an operator, a `using namespace`. `instances` are in file order.
std::optional<LaterCode> find_later_code(std::string_view text, const SourceTokens& source, const MacroTable& macros,
                                         const FirstUses& words, const std::vector<SourceRange>& instances);

}  // namespace kiln::cli
