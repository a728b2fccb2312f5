// SPDX-License-Identifier: Apache-2.0
#include "base/format.hpp"

#include <cstdio>
#include <iterator>

namespace kiln {

std::string format_count(std::uint64_t count, const char* one, const char* several) {
  return std::to_string(count) + ' ' + (count == 1 ? one : several);
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto size = static_cast<double>(bytes) / 1024;
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(units); ++unit) size /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, size < 100 ? "%.1f %s" : "%.0f %s", size, units[unit]);
  return text;
}

std::string_view truncate_utf8(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return text;
  while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xC0) == 0x80) --longest;
  return text.substr(0, longest);
}

}  // namespace kiln
