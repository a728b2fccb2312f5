// SPDX-License-Identifier: Apache-2.0
#include "remote/lease_record.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace kiln {
namespace {

constexpr std::uint64_t kMaxNumber = 999'999'999'999;
constexpr std::size_t kDigits = 12;
constexpr std::size_t kMaxOwnerLength = 128;

// Removes the next line from the text if it starts with `beginning`. Returns the rest of that line.
std::optional<std::string_view> line(std::string_view& text, std::string_view beginning) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || end < beginning.size() || !text.starts_with(beginning)) return std::nullopt;
  const std::string_view rest = text.substr(beginning.size(), end - beginning.size());
  text.remove_prefix(end + 1);
  return rest;
}

bool number(std::string_view& text, std::string_view beginning, std::uint64_t& value) {
  const std::optional<std::string_view> digits = line(text, beginning);
  if (!digits || digits->size() != kDigits) return false;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), value);
  return error == std::errc() && end == digits->data() + digits->size();
}

}  // namespace

std::string LeaseRecord::text() const {
  std::array<char, 64> numbers{};
  const auto milliseconds = std::clamp<std::int64_t>(lease.count(), 1, kMaxNumber);
  std::snprintf(numbers.data(), numbers.size(), "lease_ms %012lld\nrenewals %012llu\n",
                static_cast<long long>(milliseconds), static_cast<unsigned long long>(renewals % (kMaxNumber + 1)));
  return "kiln-lease 1\nowner " + owner + "\n" + numbers.data();
}

std::optional<LeaseRecord> LeaseRecord::parse(std::string_view text) {
  LeaseRecord row;
  std::uint64_t milliseconds = 0;
  const std::optional<std::string_view> head = line(text, "kiln-lease 1");
  if (!head || !head->empty()) return std::nullopt;
  const std::optional<std::string_view> owner = line(text, "owner ");
  if (!owner || !is_valid_owner(*owner)) return std::nullopt;
  if (!number(text, "lease_ms ", milliseconds) || !number(text, "renewals ", row.renewals)) return std::nullopt;
  if (milliseconds == 0 || !text.empty()) return std::nullopt;
  row.owner = *owner;
  row.lease = std::chrono::milliseconds(milliseconds);
  return row;
}

bool LeaseRecord::is_valid_owner(std::string_view owner) {
  return !owner.empty() && owner.size() <= kMaxOwnerLength &&
         std::all_of(owner.begin(), owner.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '/'; });
}

}  // namespace kiln
