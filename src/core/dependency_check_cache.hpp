// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "core/dependency_set.hpp"

namespace kiln {

/// A cache of recent dependency checks. Units that are requested together share most of their headers, and each header
/// is checked once for all of them. Threads that check at the same time share the work. Thread-safe.
class DependencyCheckCache {
 public:
  /// Maximum age of a file check.
  static constexpr std::chrono::seconds kMaxAge{1};

  explicit DependencyCheckCache(const Clock& clock = system_clock()) : clock_(clock) {}

  /// Checks a dependency set like `check` in dependency_set.hpp, but skips items that were verified since
  /// `requested_at`.
  std::optional<Mismatch> check(const DependencySet& dependency_set, const PathRoots& places, FileDigestCache& digests,
                                std::optional<std::chrono::nanoseconds> requested_at);

 private:
  /// The key of a check: an item, the paths of its roots, and whether its modification time matters.
  struct DependencyQuery {
    std::uint32_t places;
    const DependencySet::Dependency* item;
  };
  struct CheckedDependency {
    DependencySet::Dependency item;
    std::uint32_t places;
    std::chrono::nanoseconds at;  ///< time before the check (steady clock); 0 if it never passed
    bool taken;                   ///< a thread is checking it
  };
  using Numbers = std::vector<std::uint32_t>;

  std::uint32_t roots_id(const PathRoots& places, bool timed) KILN_REQUIRES(mutex_);
  CheckedDependency& known(const DependencyQuery& question) KILN_REQUIRES(mutex_);
  /// Claims a batch of unchecked items from item `next` on for this thread, and appends the items that other threads
  /// are checking to `taken_by_others`.
  Numbers claim_unchecked(const DependencySet& dependency_set, std::uint32_t places, std::size_t& next,
                          std::chrono::nanoseconds requested_at, Numbers& taken_by_others);
  void release(const DependencySet& dependency_set, std::uint32_t places, const Numbers& items,
               std::optional<std::chrono::nanoseconds> found_right);
  static bool is_fresh(const CheckedDependency& known, std::chrono::nanoseconds requested_at,
                       std::chrono::nanoseconds now);

  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, std::uint32_t> places_ KILN_GUARDED_BY(mutex_);
  std::uint32_t numbers_ KILN_GUARDED_BY(mutex_) = 0;  ///< never reused
  std::unordered_multimap<std::uint64_t, CheckedDependency> items_ KILN_GUARDED_BY(mutex_);
  std::chrono::nanoseconds newest_ KILN_GUARDED_BY(mutex_){0};
};

}  // namespace kiln
