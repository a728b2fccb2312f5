// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

/// The content of a lease file in a directory; docs/internals/formats/remote.md has the grammar. For a given owner its
/// length is constant, so that a renewal overwrites it in one step.
struct LeaseRecord {
  static constexpr std::size_t kMaxBytes = 512;  ///< maximum length of a record

  std::string owner;
  std::chrono::milliseconds lease{};
  std::uint64_t renewals = 0;

  std::string text() const;
  /// Returns nothing for malformed text and for records of another version.
  static std::optional<LeaseRecord> parse(std::string_view text);
  /// Returns whether a record can have this owner. A valid owner can also be part of a file name.
  static bool is_valid_owner(std::string_view owner);
};

}  // namespace kiln
