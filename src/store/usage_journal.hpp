#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <kiln/result.hpp>

#include "base/mutex.hpp"
#include "store/cache_directory.hpp"

namespace kiln {

/// How much a cache holds, without looking at every file: the total of the last scan, and what was added since by any
/// process, one appended record each (docs/usage-format.md). It may be wrong after a crash or on a network file system,
/// so it only ever decides when to scan again. Any thread.
class UsageJournal {
 public:
  explicit UsageJournal(CacheDirectory& directory) : directory_(directory) {}

  struct Total {
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds scanned_at{};  ///< wall time of the last scan
  };
  /// Adds to the total and returns it. Nothing where there is no journal that can be read: then scan.
  std::optional<Total> add(std::int64_t bytes);

  /// The length of the journal now, to be handed to `replace` after a scan.
  std::uint64_t mark();
  /// Begins anew with what a scan found; what others appended since `mark` is carried over.
  Status replace(std::uint64_t bytes, std::uint64_t mark);

 private:
  // What this process has read of the file so far, so that each put reads only what is new.
  struct Seen {
    std::uint64_t inode = 0;
    std::uint64_t offset = 0;
    std::int64_t bytes = 0;
    std::chrono::nanoseconds scanned_at{};
  };
  bool read_on(int fd, Seen& seen) KILN_REQUIRES(mutex_);

  CacheDirectory& directory_;
  Mutex mutex_;
  Seen seen_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
