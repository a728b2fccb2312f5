// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/urgency.hpp"

namespace kiln {

/// The total time that remote servers may use for one request. All lookups and claims of the request share it. Stores
/// on this host do not use it. A background request has more time until a caller waits for it. Time spent waiting for
/// another process that compiles is not server time and is not counted. Not thread-safe.
class ServerTimeBudget {
 public:
  /// A `time` of 0 means that no server is queried.
  explicit ServerTimeBudget(std::chrono::nanoseconds time) : remaining_(time), remaining_urgent_(time) {}
  /// For a request that can become urgent: `time` while no caller waits, and `urgent_time` from then on.
  ServerTimeBudget(std::chrono::nanoseconds time, Urgency urgent, std::chrono::nanoseconds urgent_time)
      : remaining_(time), remaining_urgent_(urgent_time), urgent_(std::move(urgent)) {}

  /// Returns true if no caller waits for the request.
  bool is_background() const { return urgent_.can_be_raised() && !urgent_.is_raised(); }
  std::chrono::nanoseconds remaining() const {
    return is_background() ? remaining_ : std::min(remaining_, remaining_urgent_);
  }
  /// Returns the remaining time, at most `maximum`.
  std::chrono::nanoseconds capped(std::chrono::nanoseconds maximum) const { return std::min(maximum, remaining()); }
  /// Records that a server used this time.
  void charge(std::chrono::nanoseconds time) {
    if (!is_background()) remaining_urgent_ -= std::min(time, remaining_urgent_);
    remaining_ -= std::min(time, remaining_);
  }

  /// Ends the use of servers for this request before it began, because they are overloaded.
  void refuse() {
    remaining_ = std::chrono::nanoseconds(0);
    refused_ = true;
  }
  bool is_refused() const { return refused_; }
  /// Records that a server admitted the request, so that its further queries are not refused.
  void admit() { admitted_ = true; }
  bool is_admitted() const { return admitted_; }

  /// Makes stores skip their negative cache from now on, because another process may have published the entry recently.
  void bypass_negative_cache() { fresh_ = true; }
  bool bypasses_negative_cache() const { return fresh_; }

 private:
  std::chrono::nanoseconds remaining_;
  std::chrono::nanoseconds remaining_urgent_;
  Urgency urgent_;
  bool fresh_ = false;
  bool refused_ = false;
  bool admitted_ = false;
};

}  // namespace kiln
