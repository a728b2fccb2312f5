// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/progress_callback.hpp"
#include "cache/activity_log.hpp"
#include "cache/build_history.hpp"
#include "cache/cache_directory.hpp"
#include "cache/garbage_collector.hpp"
#include "cache/store.hpp"
#include "cache/usage_journal.hpp"
#include "events/event_emitter.hpp"

namespace kiln {

/// A store with one immutable file per artifact in a directory (docs/internals/formats/cache-folder.md). Threads,
/// processes and hosts can share it. Files appear by rename and are verified when read, so locks only save work. If the
/// directory is unusable, every call returns an error and the caller continues without a cache. Thread-safe.
class DiskStore final : public Store {
 public:
  struct Options {
    std::string root;                                          ///< an absolute path
    std::uint64_t max_bytes = std::uint64_t{20} * 1000000000;  ///< bytes of all files; 0 means unlimited
    bool read_only = false;
    std::vector<uid_t> trusted_owners;  ///< accepted owners of the directory, in addition to this user and root
  };
  /// Creates the store without opening or creating a directory. Fails only if the options are invalid.
  static Result<std::unique_ptr<DiskStore>> open(Options options, EventEmitter emitter = {},
                                                 const Clock& clock = system_clock());

  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) override;
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) override;
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& context) override;
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& context) override;
  bool is_writable() override;
  std::string describe() const override;

  /// Checks in advance whether the directory is usable. Creates nothing.
  Status check();
  /// Checks in advance whether entries can be stored (CacheDirectory::check_write).
  Status check_write() { return directory_.check_write(); }
  /// Returns the recent builds, which are stored in the same directory.
  BuildHistory& history() { return history_; }
  /// Returns the counts of hits and misses, which are stored in the same directory.
  ActivityLog& activity() { return activity_; }
  const std::string& root() const { return directory_.root(); }

  struct Stats {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;                            ///< all files
    std::map<CachedFile::Kind, std::uint64_t> by_kind;  ///< bytes per kind
    std::uint64_t max_bytes = 0;
    std::chrono::nanoseconds oldest{};  ///< last use of the least recently used entry; 0 without entries
    std::chrono::nanoseconds newest{};
    std::vector<Activity> activity;  ///< per day and program, the latest day first
  };
  Result<Stats> stats();

  struct EntryInfo {
    ArtifactKey key;
    std::uint64_t bytes = 0;    ///< size of the file
    std::uint64_t payload = 0;  ///< size of the artifact
    std::string unit;
    Target target;
    std::string compiler;
    double cost_ms = 0;
    std::chrono::nanoseconds last_used{};  ///< wall time, accurate to one hour
  };
  /// Returns every entry that has a readable header, sorted by key.
  Result<std::vector<EntryInfo>> list_entries();

  struct VerifyResult {
    std::uint64_t valid = 0;
    std::uint64_t corrupt = 0;  ///< also removed if the directory is writable
  };
  /// Reads and verifies every entry.
  Result<VerifyResult> verify(const ProgressCallback& advance = {});
  /// Removes an entry. Returns false if it does not exist or the directory cannot be written.
  bool remove(const ArtifactKey& key);
  /// Removes all files of this version, regardless of their age.
  Result<GcResult> clear();
  /// Scans now and evicts if the cache exceeds its limit.
  Result<GcResult> gc();

 private:
  DiskStore(Options options, EventEmitter emitter, const Clock& clock);
  Status publish(const ShardedName& name, std::initializer_list<std::string_view> parts);
  bool scan_is_due(const std::optional<UsageJournal::Total>& total) const;
  void drop(const char* name, std::uint64_t inode, const std::string& key, const std::string& reason);

  const Options options_;
  const EventEmitter emitter_;
  const Clock& clock_;
  CacheDirectory directory_;
  UsageJournal journal_;
  BuildHistory history_;
  ActivityLog activity_;
  Mutex mutex_;
  bool collecting_ KILN_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln
