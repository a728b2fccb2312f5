#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// The files that a compiler's dependency file names behind the colons of its rules: each once, in order, as spelt.
/// It takes what compilers write of make's language: rules over several lines, `\ ` and `\#` and `$$` in names, whole
/// lines of comment, several targets and several rules (those for headers alone, which -MP adds, have nothing behind
/// the colon). nvcc escapes blanks and nothing else, so a bare `#` or `$` within a rule is part of a name. What is no
/// rule is Code::Corrupt. A name that was misread is of no file, and whoever looks for it sees that.
Result<std::vector<std::string>> parse_depfile(std::string_view text);

}  // namespace kiln
