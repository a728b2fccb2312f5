// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "remote/fleet_policy.hpp"
#include "remote/jitter.hpp"

namespace kiln {

/// The state machine of a host that wants to compile a request, from its first query to the outcome. Pure: the caller
/// passes the time and the results of the lease table and gets the next step, so that a host and a simulation take the
/// same steps. One object per wait. Not thread-safe.
///
///   Acquire ─ acquired ─► Compile
///     └─ held ─► Sleep ─► Check ─ held ─► Sleep …
///                  │        └─ free ─► ReleasedByOther
///                  ├─ hedge acquired ─► Hedge, in addition to the holder
///                  └─ timeout ────────► TimedOut
class LeaseWaiter {
 public:
  using Time = std::chrono::nanoseconds;
  enum class Step : unsigned char {
    Acquire,          ///< try to acquire the lease, then call `on_acquire`
    Check,            ///< check whether the lease is still held, then call `on_check`
    TryHedge,         ///< try to acquire a hedge, then call `on_hedge`
    Sleep,            ///< sleep until `until`
    Compile,          ///< this host holds the lease
    Hedge,            ///< this host has a hedge: compile although another host holds the lease
    ReleasedByOther,  ///< the lease was released or has expired: look up the entry, then start again
    TimedOut,         ///< the wait timed out: compile without a lease
  };
  struct Next {
    Step step = Step::Acquire;
    Time until{};  ///< end of the sleep
  };

  /// `wait` is the maximum time to wait for another holder, from `now`; 0 means no wait. `may_hold` is false for hosts
  /// that cannot publish their results: they start with a Check, wait for others and block no other host.
  LeaseWaiter(const FleetPolicy& policy, Time wait, Time now, Jitter& jitter, bool may_hold = true);

  Next next(Time now);
  void on_acquire(bool mine, Time now);
  /// `remaining` is the remaining time of the lease, if the table reports it. A sleep ends no later than the lease;
  /// otherwise a dead holder would be replaced late.
  void on_check(bool held, Time now, Time remaining = Time::max());
  void on_hedge(bool mine, Time now);
  /// Limits the wait to one lease, because the store is slow: the result of the holder may arrive late.
  void on_slow_store() { give_up_ = std::min(give_up_, start_ + policy_.lease_ttl); }
  /// Records that the table did not answer. Returns false if the wait is over: without an answer before, or if the
  /// lease can have expired since the last one. Otherwise the next step is a sleep.
  bool on_failure(Time now);

 private:
  void schedule_sleep(Time now, Time remaining = Time::max());
  bool may_hedge() const;

  FleetPolicy policy_;
  Jitter& jitter_;
  Time start_;
  Time give_up_;
  Time hedge_at_;
  Time sleep_until_{};
  Time answered_{};  // time of the last answer that the lease is held
  bool may_hold_;
  bool hedge_tried_ = false;
  bool waited_ = false;
  Step step_ = Step::Acquire;
};

}  // namespace kiln
