// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kiln::report {

/// What replaces the characters that have a meaning in HTML.
struct MarkupEscapes {
  const char* less;
  const char* greater;
  const char* ampersand;
};
constexpr MarkupEscapes kHtmlEscapes{"&lt;", "&gt;", "&amp;"};
/// For JSON in a <script> element: in JSON these characters occur only in strings.
constexpr MarkupEscapes kJsonEscapes{"\\u003c", "\\u003e", "\\u0026"};

/// Returns the text with these characters replaced, so that a browser finds no HTML in it.
std::string escape_markup(std::string_view text, const MarkupEscapes& escapes);

}  // namespace kiln::report
