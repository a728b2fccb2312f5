// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/files/files.hpp"

namespace kiln {

/// One file in the digest table, in its on-disk layout (docs/internals/formats/cache-folder.md).
struct DigestSlot {
  std::uint64_t path_hash = 0;  ///< 0 marks an empty slot
  FileStamp stamp;
  std::uint64_t mount = 0;         ///< FileState::mount
  std::int64_t first_seen_ns = 0;  ///< nonzero: there is no digest yet; time since which the file has had this stamp
  Digest digest{};
  std::uint64_t checksum = 0;  ///< covers all fields above

  static std::uint64_t hash_of(std::string_view path);
  std::uint64_t computed_checksum() const;
};

/// A digest table file that is open for lookups. It is a hash table; a few lookups read single slots, many lookups load
/// all of it. The file is not mapped, so a process that truncates it cannot crash this one. Not thread-safe.
class DigestTable {
 public:
  /// Returns null if the file is missing, if other users can write to it, or if it is not a digest table of this
  /// version.
  static std::unique_ptr<DigestTable> open(const std::string& path);

  DigestTable() = default;
  ~DigestTable();
  DigestTable(const DigestTable&) = delete;
  DigestTable& operator=(const DigestTable&) = delete;

  /// Returns the slot of a path, or null if there is none or its checksum is wrong. Valid until the next call.
  const DigestSlot* find(std::uint64_t path_hash);

  /// Replaces the file with one that holds these slots and the old slots of all other paths.
  static Status save(const std::string& path, std::vector<DigestSlot> slots);

 private:
  const DigestSlot* slot(std::size_t index);
  bool load();

  Fd file_;
  std::size_t slots_ = 0;
  std::size_t questions_ = 0;
  DigestSlot* loaded_ = nullptr;    // all slots, in a private mapping
  std::array<DigestSlot, 4> some_;  // the slots read last, unless all are loaded
  std::size_t some_start_ = 0;
  std::size_t some_count_ = 0;
};

}  // namespace kiln
