#pragma once

#include <cstddef>

namespace kiln {

/// The name of a value of an enumeration that begins at zero and ends with `last`, all names being in its order. What
/// is no value of it is "unknown".
template <auto last, std::size_t count>
constexpr const char* name_of(decltype(last) value, const char* const (&names)[count]) {
  static_assert(count == static_cast<std::size_t>(last) + 1, "each value has a name");
  return static_cast<std::size_t>(value) < count ? names[static_cast<std::size_t>(value)] : "unknown";
}

}  // namespace kiln
