// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "cache/cache_directory.hpp"
#include "cache/usage_journal.hpp"

namespace kiln {

/// A file in a cache directory.
struct CachedFile {
  enum class Kind : std::uint8_t {
    Entry,
    Hint,
    History,
    Temporary,     ///< being written, or left by a dead process
    OtherVersion,  ///< of another version of kiln: counted, never read
    Internal,      ///< journal, lock and tag: counted, never removed
  };
  Kind kind = Kind::Entry;
  std::string path;  ///< relative to the root of the cache
  std::uint64_t bytes = 0;
  std::chrono::nanoseconds last_used{};  ///< wall time of the last use, accurate to one hour
};

/// All files of a cache, of this version and of other versions. Directories without kiln's tag are skipped.
struct CacheScan {
  std::vector<CachedFile> files;
  std::optional<Error> error;  ///< reason why the list may be incomplete
};
CacheScan scan_cache(const CacheDirectory::OpenDirectory& directory);

struct GcResult {
  bool busy = false;  ///< another process is collecting; nothing was done
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  ///< before the collection
  std::uint64_t removed_files = 0;
  std::uint64_t removed_bytes = 0;
};

/// Removes stale temporary files. If the cache exceeds `bound` bytes (0 means unlimited), also removes the files with
/// the lowest retention value until it is at 90 % of `bound`, but never the most recently used entry. Rewrites the
/// journal.
Result<GcResult> collect_garbage(CacheDirectory& directory, UsageJournal& journal, std::uint64_t bound);

/// Returns the retention value per byte: the milliseconds that the file saves, halved for each week without use.
double retention_value(CachedFile::Kind kind, double cost_ms, std::uint64_t bytes, std::chrono::nanoseconds unused);

}  // namespace kiln
