// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/markup.hpp"

namespace kiln::report {

std::string escape_markup(std::string_view text, const MarkupEscapes& escapes) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<': out += escapes.less; break;
      case '>': out += escapes.greater; break;
      case '&': out += escapes.ampersand; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace kiln::report
