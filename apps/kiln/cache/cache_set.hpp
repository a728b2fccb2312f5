// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/kiln/output/console.hpp"
#include "cache/disk_store.hpp"
#include "session/config/config.hpp"

namespace kiln::cli {

/// The result of an action on one cache directory.
template <class T>
struct CacheResult {
  std::string root;
  bool writable = false;
  Result<T> result;
};

/// Returns how long ago a wall clock time was, as human-readable text.
std::string ago(std::chrono::nanoseconds moment);

/// Returns the directories with entries that this host fetched from the remote store, one per trust policy.
std::vector<std::string> fetched_directories(const Config& config);

/// Evicts entries over the size limit. Clears a cache of fetched entries that was not used for a month.
Result<GcResult> collect_garbage(DiskStore& store);

/// The configured cache directories and the caches of fetched entries in the first of them. Also opens them if caching
/// is disabled, because inspection is always allowed.
class CacheSet {
 public:
  explicit CacheSet(Console& console, std::optional<std::uint64_t> bound = {});

  const std::vector<std::unique_ptr<DiskStore>>& all() const { return stores_; }
  std::vector<DiskStore*> writable() const;

  template <class T>
  std::vector<CacheResult<T>> for_each(Result<T> (DiskStore::*action)()) const {
    std::vector<CacheResult<T>> outcomes;
    for (const auto& store : stores_)
      outcomes.push_back({store->root(), store->is_writable(), (store.get()->*action)()});
    return outcomes;
  }
  template <class T>
  std::vector<CacheResult<T>> for_writable(const std::function<Result<T>(DiskStore&)>& action) const {
    std::vector<CacheResult<T>> outcomes;
    for (DiskStore* store : writable()) outcomes.push_back({store->root(), true, action(*store)});
    return outcomes;
  }

 private:
  std::vector<std::unique_ptr<DiskStore>> stores_;
};

}  // namespace kiln::cli
