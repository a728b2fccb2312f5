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

#include "base/advance.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "observe/observer.hpp"
#include "store/cache_directory.hpp"
#include "store/collector.hpp"
#include "store/history.hpp"
#include "store/store.hpp"
#include "store/usage_journal.hpp"

namespace kiln {

/// Keeps artifacts in a folder, one immutable file each (docs/entry-format.md), for this process and those after it.
/// Any thread, any number of processes, any number of hosts. Files appear by rename and are checked when read: locks
/// only save work. A folder that cannot be used is an error of each call, and never worse than no folder.
class DiskStore final : public Store {
 public:
  struct Options {
    std::string root;                                           ///< absolute
    std::uint64_t size_bound = std::uint64_t{20} * 1000000000;  ///< of all files in it; 0 for none
    bool read_only = false;
    std::vector<uid_t> trusted_owners;  ///< whose folder it may be, besides this user's and root's
  };
  /// Opens and makes nothing yet; an error only for options that make no sense.
  static Result<std::unique_ptr<DiskStore>> open(Options options, Observer observer = {},
                                                 const Clock& clock = system_clock());

  Result<std::optional<Hit>> get(const Key& key) override;
  Status put(const Key& key, const Artifact& artifact) override;
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit = kMostClosures) override;
  Status add_closure(const RequestKey& request, const Closure& closure) override;
  bool writable() override;
  std::string describe() const override;

  /// Whether the folder could be used: for those who want to know before they need it. Makes nothing.
  Status check();
  /// What was built lately, in the same folder.
  BuildHistory& history() { return history_; }
  const std::string& root() const { return directory_.root(); }

  struct Stats {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;                            ///< of everything
    std::map<CachedFile::Kind, std::uint64_t> by_kind;  ///< bytes
    std::uint64_t bound = 0;
    std::chrono::nanoseconds oldest{};  ///< last use of the entry that was used longest ago; zero without entries
    std::chrono::nanoseconds newest{};
  };
  Result<Stats> stats();

  struct Listed {
    Key key;
    std::uint64_t bytes = 0;    ///< of the file
    std::uint64_t payload = 0;  ///< of the artifact
    std::string unit;
    Target target;
    std::string compiler;
    double cost_ms = 0;
    std::chrono::nanoseconds last_used{};  ///< wall time, true to the hour
  };
  /// Every entry whose head can be read, in the order of the keys.
  Result<std::vector<Listed>> list();

  struct Verified {
    std::uint64_t sound = 0;
    std::uint64_t damaged = 0;  ///< removed, where the folder can be written
  };
  /// Reads and checks every entry.
  Result<Verified> verify(const Advance& advance = {});
  /// Takes an entry out; false where there was none, or the folder cannot be written.
  bool remove(const Key& key);
  /// Removes everything of this version, whatever its age.
  Result<Collected> clear();
  /// Scans now, and evicts if that is due.
  Result<Collected> gc();

 private:
  DiskStore(Options options, Observer observer, const Clock& clock);
  Status publish(const ShardedName& name, std::initializer_list<std::string_view> parts);
  bool scan_is_due(const std::optional<UsageJournal::Total>& total) const;
  void drop(const char* name, std::uint64_t inode, const std::string& key, const std::string& why);

  const Options options_;
  const Observer observer_;
  const Clock& clock_;
  CacheDirectory directory_;
  UsageJournal journal_;
  BuildHistory history_;
  Mutex mutex_;
  bool collecting_ KILN_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln
