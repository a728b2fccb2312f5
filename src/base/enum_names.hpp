// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace kiln {

/// Returns the name of an enumerator. The enumeration starts at zero and ends with `last`, and `names` is in its order.
/// Returns "unknown" for any other value.
template <auto last, std::size_t count>
constexpr const char* enum_name(decltype(last) value, const char* const (&names)[count]) {
  static_assert(count == static_cast<std::size_t>(last) + 1, "each enumerator needs a name");
  return static_cast<std::size_t>(value) < count ? names[static_cast<std::size_t>(value)] : "unknown";
}

}  // namespace kiln
