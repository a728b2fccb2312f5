// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace kiln {

/// The total time that remote servers may use for one request. All lookups and claims of the request share it. Stores
/// on this host do not use it. Time spent waiting for another process that compiles is not server time and is not
/// counted. Not thread-safe.
class ServerTimeBudget {
 public:
  /// A `time` of 0 means that no server is queried.
  explicit ServerTimeBudget(std::chrono::nanoseconds time) : remaining_(time) {}

  std::chrono::nanoseconds remaining() const { return remaining_; }
  /// Returns the remaining time, at most `maximum`.
  std::chrono::nanoseconds capped(std::chrono::nanoseconds maximum) const { return std::min(maximum, remaining_); }
  /// Records that a server used this time.
  void charge(std::chrono::nanoseconds time) { remaining_ -= std::min(time, remaining_); }

  /// Makes stores skip their negative cache from now on, because another process may have published the entry recently.
  void bypass_negative_cache() { fresh_ = true; }
  bool bypasses_negative_cache() const { return fresh_; }

 private:
  std::chrono::nanoseconds remaining_;
  bool fresh_ = false;
};

}  // namespace kiln
