#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// What a text of the C family includes, or asks for with __has_include, as far as it is written out.
struct IncludeNames {
  struct Name {
    std::string name;
    bool quoted = false;  ///< "x.h": looked for beside the text itself first
  };
  std::vector<Name> names;
  bool computed = false;  ///< it has an include whose name a macro makes
};

/// Finds too many (those in comments and in branches that are not taken), never too few, save what macros make and
/// what is split within a word.
IncludeNames include_names(std::string_view text);

}  // namespace kiln
