#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "store/cache_directory.hpp"
#include "store/usage_journal.hpp"

namespace kiln {

/// A file in a cache's folder.
struct CachedFile {
  enum class Kind : std::uint8_t {
    Entry,
    Hint,
    History,
    Temporary,     ///< being written, or left by a process that died
    OtherVersion,  ///< of another version of kiln: counted, never read
    Own,           ///< the journal, the lock, the tag: counted, never removed
  };
  Kind kind = Kind::Entry;
  std::string path;  ///< from the cache's root
  std::uint64_t bytes = 0;
  std::chrono::nanoseconds used{};  ///< wall time, true to the hour
};

/// Every file of the cache, its own version's and other versions'. Folders without kiln's tag are somebody else's.
struct CacheScan {
  std::vector<CachedFile> files;
  std::optional<Error> unread;  ///< why there may be more
};
CacheScan scan_cache(const CacheDirectory::Folder& folder);

struct Collected {
  bool elsewhere = false;  ///< another process is at it: nothing was done
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  ///< before
  std::uint64_t removed_files = 0;
  std::uint64_t removed_bytes = 0;
};

/// Removes left-over temporary files; and when the cache is over `bound` (0: there is none), what is worth least until
/// it is at nine tenths of it, but for the entry that was used last. Writes the journal anew.
Result<Collected> collect(CacheDirectory& directory, UsageJournal& journal, std::uint64_t bound);

/// What a byte of a file is worth keeping for: the milliseconds that it saves, halved for each week without use.
double worth(CachedFile::Kind kind, double cost_ms, std::uint64_t bytes, std::chrono::nanoseconds unused);

}  // namespace kiln
