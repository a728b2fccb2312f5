#pragma once

#include <string_view>
#include <vector>

namespace kiln {

/// Returns the parts between separators, including empty ones, but none after a trailing separator. The parts are views
/// of `text`.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace kiln
