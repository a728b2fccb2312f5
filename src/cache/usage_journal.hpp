// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <kiln/result.hpp>

#include "base/mutex.hpp"
#include "cache/cache_directory.hpp"

namespace kiln {

/// The size of a cache without a scan: the total of the last scan, plus one appended record for each change by any
/// process since then (docs/internals/formats/cache-folder.md). It may be wrong after a crash or on a network file
/// system, so it only decides when to scan again. Thread-safe.
class UsageJournal {
 public:
  explicit UsageJournal(CacheDirectory& directory) : directory_(directory) {}

  struct Total {
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds scanned_at{};  ///< wall time of the last scan
  };
  /// Adds to the total and returns it. Returns nothing if there is no readable journal; the caller must scan then.
  std::optional<Total> add(std::int64_t bytes);

  /// Returns the current length of the journal, to pass to `replace` after a scan.
  std::uint64_t length();
  /// Replaces the journal with the result of a scan. Records that other processes appended after `mark` are kept.
  Status replace(std::uint64_t bytes, std::uint64_t mark);

 private:
  // The part of the file that this process has read, so that each put reads only new records.
  struct ReadState {
    std::uint64_t inode = 0;
    std::uint64_t offset = 0;
    std::int64_t bytes = 0;
    std::chrono::nanoseconds scanned_at{};
  };
  bool read_appended(int fd, ReadState& seen) KILN_REQUIRES(mutex_);

  CacheDirectory& directory_;
  Mutex mutex_;
  ReadState seen_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
