#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "store/store.hpp"

namespace kiln::test {

/// A store in memory, without a bound. Any thread.
class MemoryStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const Key& key) override {
    const MutexLock lock(mutex_);
    const auto found = artifacts_.find(key);
    if (found == artifacts_.end()) return std::optional<Hit>();
    return std::optional<Hit>(Hit{found->second, Origin::Memory});
  }
  Status put(const Key& key, const Artifact& artifact) override {
    const MutexLock lock(mutex_);
    artifacts_[key] = artifact;
    artifacts_[key].closure = nullptr;  // a hit does not tell it
    return {};
  }
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit = kMostClosures) override {
    const MutexLock lock(mutex_);
    std::vector<Closure> known = closures_[request];
    known.resize(std::min(limit, known.size()));
    return known;
  }
  Status add_closure(const RequestKey& request, const Closure& closure) override {
    const MutexLock lock(mutex_);
    std::vector<Closure>& known = closures_[request];
    std::erase(known, closure);
    known.insert(known.begin(), closure);
    known.resize(std::min(kMostClosures, known.size()));
    return {};
  }
  std::string describe() const override { return "memory"; }

 private:
  Mutex mutex_;
  std::unordered_map<Key, Artifact> artifacts_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<RequestKey, std::vector<Closure>> closures_ KILN_GUARDED_BY(mutex_);  // newest first
};

}  // namespace kiln::test
