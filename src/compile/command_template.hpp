#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "core/recipe.hpp"

namespace kiln {

/// Whether kiln can vouch for what a program with this command line reads. Its arguments name no file but by the
/// placeholders and no folder but by the unit's include roots, so that the closure has them all.
Status check_template(const Unit& unit);

/// Whether the command line says where the program writes what it has read.
bool has_depfile(const Unit& unit);

/// The first part of this text, of the command line or of a variable, that makes the program read something which
/// kiln does not see; empty where there is none.
std::string names_hidden_input(std::string_view text);

/// The command line of a recipe, with `program` for its first word and `source` for its file, which lies where a
/// CommandFolder has the program work. Relative include roots are those of the recipe's working directory; a unit with
/// headers from memory has the folder that they are in, `.`, before its roots.
std::vector<std::string> fill_template(const Recipe& recipe, const std::string& program, const std::string& source);

}  // namespace kiln
