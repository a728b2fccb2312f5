// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln {

/// What one program requested on one day: a line of `kiln cache stats`. A value type.
struct Activity {
  std::uint32_t day = 0;     ///< days since 1970
  std::string program;       ///< name of the program or script; at most kActivityProgram bytes
  std::uint64_t bundle = 0;  ///< hits, by the tier that served them
  std::uint64_t disk = 0;
  std::uint64_t remote = 0;
  std::uint64_t compiled = 0;  ///< misses that were compiled
  std::uint64_t failed = 0;    ///< misses that the compiler rejected
  std::uint64_t saved_ms = 0;  ///< compile times of the hits, as far as their entries state them, without the lookups

  std::uint64_t hits() const { return bundle + disk + remote; }
  std::uint64_t misses() const { return compiled + failed; }
  friend bool operator==(const Activity&, const Activity&) = default;
};

/// Sizes in bytes of a record and of the name in it (docs/internals/formats/cache-folder.md).
inline constexpr std::size_t kActivityRecord = 136;
inline constexpr std::size_t kActivityProgram = 64;

/// Encodes a record. A longer name is shortened.
std::string encode_activity(const Activity& activity);
/// Returns the valid records of a file, in its order. Skips everything else. Accepts arbitrary bytes.
std::vector<Activity> decode_activities(std::span<const std::uint8_t> file);
/// Returns one sum per day and program, the latest day first, then by program.
std::vector<Activity> sum_activities(const std::vector<Activity>& records);

}  // namespace kiln
