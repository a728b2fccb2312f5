#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "compile/file_recorder.hpp"
#include "core/recipe.hpp"

namespace kiln {

/// What a program that compiled a recipe asked the file system, as far as that can be told afterwards.
///
/// A dependency file names what was read and no place that was looked in vain, where a new file would be read instead.
/// So the texts are searched for what they include, and every folder in which the compiler looks for such a name gives
/// an observation: a file that was read, one that is there and was not read, or none. That is more than the compiler
/// asked for (branches that are not taken count too), which costs at most a compile.
///
/// `dependencies` are the dependency file's; relative ones are in the folder that the program ran in, which is the
/// unit's own. `folders` are those that the program searches besides the unit's include roots. `started` is the wall
/// time at which the program was started: what changed later may be another thing than it read. Code::Unsupported where
/// the unit reads what no closure can name.
Result<std::vector<Observation>> observations_of(const Recipe& recipe, const std::vector<std::string>& dependencies,
                                                 const std::vector<std::string>& folders,
                                                 std::chrono::nanoseconds started);

}  // namespace kiln
