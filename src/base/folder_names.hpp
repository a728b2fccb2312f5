#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// What is in a folder, by name only and in no order; an error where not all of it can be read. `list_directory`
/// (base/files.hpp) is for those to whom a folder that cannot be read is an empty one.
Result<std::vector<std::string>> read_directory(int directory, const char* path);

}  // namespace kiln
