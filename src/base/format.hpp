// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

// Formatting of values for messages.
namespace kiln {

/// Returns `1 entry`, `2 entries`.
std::string format_count(std::uint64_t count, const char* one, const char* several);
/// Returns `4 B`, `1.5 MiB`.
std::string format_bytes(std::uint64_t bytes);
/// Returns at most `longest` bytes of the beginning of a text, without splitting a code point.
std::string_view truncate_utf8(std::string_view text, std::size_t longest);

/// Returns `a, b, c` from the results of `text` for each item.
template <class Items, class Text = std::identity>
std::string join_strings(const Items& items, Text text = {}, std::string_view between = ", ") {
  std::string all;
  for (const auto& item : items) all.append(all.empty() ? "" : between).append(std::invoke(text, item));
  return all;
}

}  // namespace kiln
