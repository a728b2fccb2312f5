// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "core/recipe.hpp"

namespace kiln {

/// Checks that kiln can track all inputs of a program with this command line. Its arguments name files only by
/// placeholders and directories only by the unit's include roots, so that the dependency set contains them all.
Status check_template(const Unit& unit);

/// Returns true if the command line makes the program write a dependency file.
bool has_depfile(const Unit& unit);

/// Returns the first part of this text (of the command line or of an environment variable) that makes the program read
/// an input that kiln does not track; empty if there is none.
std::string find_untracked_input(std::string_view text);

/// Returns the command line of a recipe with `program` as its first word and `source` as its file, which is in the
/// working directory of a `CommandWorkDir`. Relative include roots refer to the recipe's working directory. A unit with
/// in-memory headers has their directory, `.`, before its roots.
std::vector<std::string> fill_template(const Recipe& recipe, const std::string& program, const std::string& source);

}  // namespace kiln
