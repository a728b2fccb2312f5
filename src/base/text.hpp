#pragma once

#include <string_view>
#include <vector>

namespace kiln {

/// The parts of a text between separators, empty ones too; none behind a separator at the end. Views of the text.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace kiln
