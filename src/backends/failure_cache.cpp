// SPDX-License-Identifier: Apache-2.0
#include "backends/failure_cache.hpp"

#include <memory>

namespace kiln {

void FailureCache::add(const Recipe& recipe, DependencySet read) {
  // Shared, because each call copies the check. The path roots are those of the requested recipe: one request can come
  // from two checkouts.
  add(recipe, [read = std::make_shared<const DependencySet>(std::move(read)), &digests = digests_](
                  const Recipe& asked) { return check(*read, asked.path_roots(), digests).has_value(); });
}

void FailureCache::add(const Recipe& recipe, RetryCheck question) {
  const MutexLock lock(mutex_);
  if (known_.size() >= kMaxEntries) known_.clear();
  known_.insert_or_assign(recipe.request_key(), std::move(question));
}

bool FailureCache::worth_another_try(const Recipe& recipe) const {
  RetryCheck question;
  {
    const MutexLock lock(mutex_);
    const auto found = known_.find(recipe.request_key());
    if (found == known_.end()) return true;
    question = found->second;
  }
  return question(recipe);  // without the lock, because it reads files
}

}  // namespace kiln
