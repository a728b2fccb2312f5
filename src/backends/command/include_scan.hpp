// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// The names that a C-family text includes, or checks with __has_include, if they are written literally.
struct IncludeScan {
  struct Name {
    std::string name;
    bool quoted = false;  ///< "x.h": searched next to the text first
  };
  std::vector<Name> names;
  bool computed = false;  ///< true if the text has an include that a macro names
};

/// Returns the included names of a text. The result can contain too many (in comments and in branches that are not
/// taken) but not too few, except names that macros build and names that are split within a word.
IncludeScan scan_includes(std::string_view text);

}  // namespace kiln
