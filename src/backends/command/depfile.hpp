// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// Parses a compiler's dependency file. Returns the prerequisites of its rules: each file once, in order, as given. It
/// accepts the subset of make's syntax that compilers write: rules over several lines, `\ ` and `\#` and `$$` in names,
/// full-line comments, several targets and several rules (-MP adds rules for headers without prerequisites). nvcc
/// escapes only blanks, so a bare `#` or `$` within a rule is part of a name. Returns Code::Corrupt for text that is
/// not a rule. A name that was misread does not match a file, and the caller's lookup fails.
Result<std::vector<std::string>> parse_depfile(std::string_view text);

}  // namespace kiln
