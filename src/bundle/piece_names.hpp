#pragma once

#include <cstdint>
#include <string>

namespace kiln {

// The names under which the pieces of a bundle travel: files of a folder, and in an image files of the folder `kiln`.

inline constexpr const char* kBundleHeadName = "head";

/// `group-0007`.
inline std::string bundle_group_name(std::uint32_t number) {
  const std::string digits = std::to_string(number);
  return "group-" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

}  // namespace kiln
