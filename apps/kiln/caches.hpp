#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/kiln/console.hpp"
#include "session/config.hpp"
#include "store/disk_store.hpp"

namespace kiln::cli {

/// What an action on one cache folder came to.
template <class T>
struct CacheOutcome {
  std::string root;
  bool writable = false;
  Result<T> result;
};

/// How long ago a moment was, of the wall clock's: for people.
std::string ago(std::chrono::nanoseconds moment);

/// The folders in which this host keeps what it fetched, under whichever policy that was.
std::vector<std::string> fetched_folders(const Config& config);

/// Evicts what is due; of what came from a remote store everything, where nobody has used it for a month.
Result<Collected> collect_garbage(DiskStore& store);

/// The cache folders that the configuration names and what lies beside the first of them from remote stores, also where
/// caching is switched off: looking is allowed.
class Caches {
 public:
  explicit Caches(Console& console, std::optional<std::uint64_t> bound = {});

  const std::vector<std::unique_ptr<DiskStore>>& all() const { return stores_; }
  std::vector<DiskStore*> writable() const;

  template <class T>
  std::vector<CacheOutcome<T>> for_each(Result<T> (DiskStore::*action)()) const {
    std::vector<CacheOutcome<T>> outcomes;
    for (const auto& store : stores_) outcomes.push_back({store->root(), store->writable(), (store.get()->*action)()});
    return outcomes;
  }
  template <class T>
  std::vector<CacheOutcome<T>> for_writable(const std::function<Result<T>(DiskStore&)>& action) const {
    std::vector<CacheOutcome<T>> outcomes;
    for (DiskStore* store : writable()) outcomes.push_back({store->root(), true, action(*store)});
    return outcomes;
  }

 private:
  std::vector<std::unique_ptr<DiskStore>> stores_;
};

}  // namespace kiln::cli
