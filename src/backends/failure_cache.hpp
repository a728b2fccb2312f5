// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "base/files/file_digest_cache.hpp"
#include "base/mutex.hpp"
#include "core/recipe.hpp"

namespace kiln {

/// A cache of recipes that failed to compile, each with a check whether a retry is useful. Thread-safe.
class FailureCache {
 public:
  /// Maximum number of entries. A dropped entry costs one compile at the next request.
  static constexpr std::size_t kMaxEntries = 1024;
  /// Returns true if a failed recipe can have another result now. It is called on the thread that calls
  /// `worth_another_try`.
  using RetryCheck = std::function<bool(const Recipe& recipe)>;

  explicit FailureCache(FileDigestCache& digests) : digests_(digests) {}

  /// Adds a failed recipe with the dependencies that its compile read. It will fail again while these are unchanged.
  void add(const Recipe& recipe, DependencySet read);
  /// Adds a failed recipe. It will fail again until `question` returns true.
  void add(const Recipe& recipe, RetryCheck question);

  /// Returns true if a retry is useful, and for recipes that are not in the cache.
  bool worth_another_try(const Recipe& recipe) const;

 private:
  FileDigestCache& digests_;
  mutable Mutex mutex_;
  std::map<RequestKey, RetryCheck> known_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
