// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include <kiln/artifact.hpp>

#include "cache/activity_format.hpp"
#include "cache/cache_directory.hpp"

namespace kiln {

/// The hits and misses of programs by day, in one small file per day of a cache
/// (docs/internals/formats/cache-folder.md). A process counts in memory and appends one record when it ends, when
/// the day changes, and at most once a minute while it counts. For reports only: nothing is written into a cache that
/// is read-only or on a network, and a record that is lost is not missed. A forked child does not count. Thread-safe.
class ActivityLog {
 public:
  explicit ActivityLog(CacheDirectory& directory);

  /// Count a hit or a compile, and append what was counted if the last record is a minute old.
  void count_hit(Origin origin, double saved_ms);
  void count_compile(bool succeeded);
  /// Appends what was counted since the last record.
  void flush();

  /// Returns the sums per day and program of the last kDays days.
  std::vector<Activity> read();

  /// Older files are removed.
  static constexpr std::uint32_t kDays = 32;
  /// Maximum size of the file of a day; the rest of that day is not recorded.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;

 private:
  /// Appends the counts of an earlier day, before the first one of a new day.
  void flush_past_day();
  void flush_if_due();
  Activity take();
  void append(const Activity& activity);

  CacheDirectory& directory_;
  const pid_t process_;
  std::atomic<std::uint64_t> bundle_{0};
  std::atomic<std::uint64_t> disk_{0};
  std::atomic<std::uint64_t> remote_{0};
  std::atomic<std::uint64_t> compiled_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> saved_us_{0};
  std::atomic<std::uint32_t> day_;        // of the counts
  std::atomic<std::int64_t> flushed_at_;  // steady clock, in nanoseconds
};

}  // namespace kiln
