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
/// (docs/internals/formats/cache-folder.md). A process counts in memory and appends one record when it ends, or once a
/// minute while it compiles. For reports only: nothing is written into a cache that is read-only or on a network, and a
/// record that is lost is not missed. A forked child does not count. Thread-safe.
class ActivityLog {
 public:
  explicit ActivityLog(CacheDirectory& directory);

  void count_hit(Origin origin, double saved_ms);
  /// Counts a compile, and appends what was counted if the last record is a minute old.
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
  std::atomic<std::int64_t> flushed_at_;  // steady clock, in nanoseconds
};

}  // namespace kiln
