#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

// How values are said to people.
namespace kiln {

/// `1 entry`, `2 entries`
std::string counted(std::uint64_t count, const char* one, const char* several);
/// `4 B`, `1.5 MiB`
std::string size_text(std::uint64_t bytes);
/// The beginning of a text, of at most so many bytes, that does not end within a code point.
std::string_view cut_text(std::string_view text, std::size_t longest);

/// `a, b, c`, of what `text` says of each.
template <class Items, class Text = std::identity>
std::string joined(const Items& items, Text text = {}, std::string_view between = ", ") {
  std::string all;
  for (const auto& item : items) all.append(all.empty() ? "" : between).append(std::invoke(text, item));
  return all;
}

}  // namespace kiln
