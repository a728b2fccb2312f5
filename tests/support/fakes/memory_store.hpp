// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "cache/store.hpp"

namespace kiln::test {

/// An unbounded store in memory. Thread-safe.
class MemoryStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& /*context*/) override {
    const MutexLock lock(mutex_);
    const auto found = artifacts_.find(key);
    if (found == artifacts_.end()) return std::optional<Hit>();
    return std::optional<Hit>(Hit{found->second, Origin::Memory});
  }
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& /*context*/) override {
    const MutexLock lock(mutex_);
    artifacts_[key] = artifact;
    artifacts_[key].dependency_set = nullptr;  // a hit does not return it
    return {};
  }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& /*context*/) override {
    const MutexLock lock(mutex_);
    std::vector<DependencySet> known = dependency_sets_[request];
    known.resize(std::min(limit, known.size()));
    return known;
  }
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& /*context*/) override {
    const MutexLock lock(mutex_);
    std::vector<DependencySet>& known = dependency_sets_[request];
    std::erase(known, dependency_set);
    known.insert(known.begin(), dependency_set);
    known.resize(std::min(kMaxDependencySets, known.size()));
    return {};
  }
  std::string describe() const override { return "memory"; }

 private:
  Mutex mutex_;
  std::unordered_map<ArtifactKey, Artifact> artifacts_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<RequestKey, std::vector<DependencySet>> dependency_sets_ KILN_GUARDED_BY(mutex_);  // newest first
};

}  // namespace kiln::test
