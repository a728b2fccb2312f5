// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.hpp"

namespace kiln {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string_view first_line(std::string_view text) {
  const std::size_t start = std::min(text.find_first_not_of('\n'), text.size());
  return text.substr(start, text.find('\n', start) - start);
}

std::string invalid_value(std::string_view text, const char* valid) {
  constexpr std::size_t kMaxShown = 80;
  const char* const rest = text.size() > kMaxShown ? "..." : "";
  return "invalid value '" + std::string(text.substr(0, kMaxShown)) + rest + "'; use " + valid;
}

std::optional<bool> parse_boolean(std::string_view text) {
  // Independent of the locale, in which the case of letters can differ.
  const auto equals = [&](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                      [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
  };
  for (const std::string_view word : {"1", "true", "yes", "on"}) {
    if (equals(word)) return true;
  }
  for (const std::string_view word : {"0", "false", "no", "off"}) {
    if (equals(word)) return false;
  }
  return std::nullopt;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  constexpr std::string_view kLetters = "KMGT";
  int shift = 0;
  bool good = error == std::errc() && number > 0;
  if (!suffix.empty()) {
    const std::size_t power = kLetters.find(suffix.front());
    const std::string_view rest = suffix.substr(1);
    good = good && power != std::string_view::npos && (rest.empty() || rest == "B" || rest == "iB");
    shift = good ? 10 * static_cast<int>(power + 1) : 0;
  }
  if (!good || number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
    return make_error(Code::InvalidArgument, invalid_value(text, kSizeValues));
  }
  return number << shift;
}

}  // namespace kiln
