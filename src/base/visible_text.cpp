// SPDX-License-Identifier: Apache-2.0
#include "base/visible_text.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace kiln {
namespace {

/// A code point and its size in bytes; size 0 if the text is not UTF-8 at this position.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t size = 0;
};

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < size) return {};
  std::uint32_t value = lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3FU);
  }
  const std::uint32_t minimum = size == 4 ? 0x10000 : size == 3 ? 0x800 : 0x80;
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < minimum || value > 0x10FFFF || surrogate) return {};
  return {value, size};
}

bool is_obeyed(std::uint32_t point) {
  if (point < 0x20 || (point >= 0x7F && point <= 0x9F)) return true;
  if (point == 0x061C || point == 0x200E || point == 0x200F) return true;
  return (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

std::string visible_text(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    char escaped[16];
    if (point.size == 0) {
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[at])));
      out += escaped;
      ++at;
      continue;
    }
    if (is_obeyed(point.value) && (point.size > 1 || kept.find(text[at]) == std::string_view::npos)) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(point.value));
      out += escaped;
    } else {
      out.append(text, at, point.size);
    }
    at += point.size;
  }
  return out;
}

std::string visible_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t start = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t end = url.rfind('@');
  if (url.starts_with('/') || end == std::string_view::npos || end < start) return std::string(url);
  return std::string(url.substr(0, start)) + "***" + std::string(url.substr(end));
}

void print_warning(std::string_view message) {
  std::fprintf(stderr, "kiln: warning: %s\n", visible_text(message).c_str());
}

}  // namespace kiln
