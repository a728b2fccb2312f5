#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

/// What the file of a lease in a folder says; docs/leases.md has the grammar. Of one length for an owner, so that a
/// renewal is written over what was there in one step. A value.
struct LeaseRow {
  static constexpr std::size_t kMostBytes = 512;  ///< no row is longer

  std::string owner;
  std::chrono::milliseconds lease{};
  std::uint64_t renewals = 0;

  std::string text() const;
  /// Nothing for what is no row, or one of another version.
  static std::optional<LeaseRow> parse(std::string_view text);
  /// Whether a row can have this owner, and a file's name too.
  static bool may_own(std::string_view owner);
};

}  // namespace kiln
