// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include "base/clock.hpp"
#include "core/server_time_budget.hpp"

namespace kiln {

/// The deadline of one query of a server. A background query, which may take seconds, ends early if a caller begins to
/// wait for its request: the caller waits at most `urgent_timeout`. The server's code polls this, as it does for
/// Ctrl-C. Not thread-safe.
class QueryDeadline {
 public:
  using Time = std::chrono::nanoseconds;
  /// `budget` is that of the request and can be null. `outer` is the interrupt check of the request and can be null.
  QueryDeadline(const Clock& clock, Time timeout, const ServerTimeBudget* budget, Time urgent_timeout,
                InterruptCheck* outer = nullptr)
      : clock_(clock), budget_(budget != nullptr && budget->is_background() ? budget : nullptr),
        urgent_timeout_(urgent_timeout), outer_(outer), background_at_(clock.steady()),
        deadline_(clock, timeout, budget_ != nullptr ? &check_ : outer) {}
  QueryDeadline(const QueryDeadline&) = delete;
  QueryDeadline& operator=(const QueryDeadline&) = delete;

  const Deadline& deadline() const { return deadline_; }
  /// Returns whether the query ended because a caller waits for its request.
  bool is_ended_by_caller() const { return ended_by_caller_; }

 private:
  // Maximum time between two polls, as in base/clock.cpp.
  static constexpr Time kPollInterval = std::chrono::milliseconds(40);

  bool keep_waiting() {
    if (outer_ != nullptr && outer_->poll()) return false;
    const Time now = clock_.steady();
    if (budget_->is_background()) {
      background_at_ = now;
      return true;
    }
    // The caller may wait since the last poll, and the next poll would be too late.
    ended_by_caller_ = now - background_at_ >= urgent_timeout_ - kPollInterval;
    return !ended_by_caller_;
  }

  const Clock& clock_;
  const ServerTimeBudget* const budget_;
  const Time urgent_timeout_;
  InterruptCheck* const outer_;
  Time background_at_;  // of the last poll at which no caller waited
  bool ended_by_caller_ = false;
  const std::function<bool()> keep_waiting_ = [this] { return keep_waiting(); };
  InterruptCheck check_{&keep_waiting_};
  const Deadline deadline_;
};

}  // namespace kiln
