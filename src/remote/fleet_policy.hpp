// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace kiln {

/// All time limits, rates and counts of a host in a fleet. Sessions, the command line, tests and the simulation
/// (bench/fleet) take them from here. docs/explanation/one-compile.md gives the reason for each value.
struct FleetPolicy {
  using Time = std::chrono::nanoseconds;

  /// Total time that servers may use for a request that a caller waits for.
  Time budget = std::chrono::milliseconds(100);
  /// Total time that servers may use for a background request, and for one query of it: a server with a queue of a
  /// tenth of a second has not failed. `slow_query_timeout` applies once a query has timed out (CircuitBreaker).
  Time background_budget = std::chrono::seconds(8);
  Time query_timeout = std::chrono::milliseconds(500);
  Time slow_query_timeout = std::chrono::seconds(2);
  /// The account of the time that background requests wait for the store (WaitAccount): its first and its maximum
  /// balance, and what it earns per compile time that a hit saved and per time that passes.
  Time initial_wait = std::chrono::seconds(4);
  Time max_wait = std::chrono::seconds(16);
  double wait_per_saved = 0.5;
  double wait_per_time = 0.1;
  /// Fraction of the budget reserved for detecting a timeout. No request is sent when less than this remains.
  double reserved_fraction = 0.05;
  /// Returns the timeout of a request if `remaining` of a budget remains; 0 means no request.
  Time usable_budget(Time remaining) const {
    const double kept_back = reserved_fraction * static_cast<double>(budget.count());
    return std::max(remaining - Time(static_cast<std::int64_t>(kept_back)), Time(0));
  }

  /// Returns the timeout of one query of a background request, which is not less than that of a caller.
  Time background_timeout(bool slow) const {
    return usable_budget(std::max(slow ? slow_query_timeout : query_timeout, budget));
  }

  /// Time between a failure of a server and its first probe; doubled after each failed probe, up to `max_backoff`.
  Time initial_backoff = std::chrono::milliseconds(500);
  Time max_backoff = std::chrono::seconds(10);
  Time probe_timeout() const { return query_timeout / 2; }
  /// Minimum time between a failed probe and one that a background request starts before it compiles. So a fleet finds
  /// out soon that a server has recovered, and does not compile everything.
  Time early_probe_interval = std::chrono::seconds(1);
  /// Consecutive rejected responses that open the circuit.
  unsigned max_consecutive_rejections = 16;

  /// Lifetime of a negative cache entry, and the maximum number of them.
  Time negative_ttl = std::chrono::seconds(5);
  std::size_t max_negative_entries = 10'000;

  /// Limits of the upload queue. Further uploads are dropped and counted.
  std::size_t max_pending_uploads = 1024;
  std::uint64_t max_pending_upload_bytes = std::uint64_t{64} << 20;
  Time upload_timeout = std::chrono::seconds(30);
  /// Time that the end of a session waits for its uploads.
  Time drain_timeout = std::chrono::seconds(2);

  /// Time after which a lease expires unless its holder renews it. Holders renew it after a third of this time.
  Time lease_ttl = std::chrono::seconds(5);
  /// Poll interval of a waiter: first `initial_poll_interval`, then a quarter of the time waited so far, at least
  /// `initial_poll_interval` and at most `max_poll_interval`. If compiles take half a second or more, shorter intervals
  /// gain nothing and double the load of the lease table (docs/internals/fleet-simulation.md).
  Time initial_poll_interval = std::chrono::milliseconds(200);
  Time max_poll_interval = std::chrono::seconds(2);
  /// Interval over which waiters spread their checks of an expired lease. A dead holder is replaced within one second
  /// after its lease expires, and not by all waiters at once.
  Time takeover_jitter = std::chrono::milliseconds(800);
  /// Fraction of the maximum wait after which a waiter tries to get a hedge: the right to compile in addition to the
  /// holder.
  double hedge_after_fraction = 0.8;
  /// Maximum number of hedges of a request within the maximum wait of a waiter, in the whole fleet.
  unsigned max_hedges = 1;
  /// Jitter of every wait, as a fraction of it. It spreads hosts that started at the same time.
  double jitter = 0.25;
};

}  // namespace kiln
