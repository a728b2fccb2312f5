// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "remote/fleet_policy.hpp"
#include "remote/jitter.hpp"

namespace kiln {

/// The circuit breaker of one server. A pure state machine: the caller passes the time, so that a simulation can drive
/// it. Not thread-safe.
///
///             timeout             timeout of `slow_query_timeout`
///   Closed ─────────────► Slow ─────────────────────────────────► Open ◄─ no answer ─┐
///    │ ▲ ▲                │ ▲                                      ▲ └─ backoff ─► Probing
///    │ │ └─ fast answer ──┘ └── slow answer to a probe ────────────┼─────────────────┤
///    │ └─────────────────────── fast answer to a probe ────────────┼─────────────────┘
///    └───────────────────────── any other failure, also in Slow ───┘
///
/// Closed: all requests are sent. Slow: the server may have a queue. Background requests are sent with a longer
/// timeout; requests that a caller waits for are not, because they would time out. Open: no requests are sent, so that
/// the next caller does not pay for a known failure. An answer is fast if it takes at most the budget of a caller.
///
/// While the circuit is not closed, a probe is due after a backoff, which has jitter and doubles with each failure. A
/// background request that would compile because the circuit is open can probe earlier (`begin_early_probe`). A probe
/// that is not answered leaves a slow circuit slow. The backoff is reset only by a fast answer to a regular request;
/// otherwise a server that answers only probes would delay a caller after every probe.
class CircuitBreaker {
 public:
  using Time = std::chrono::nanoseconds;

  CircuitBreaker(const FleetPolicy& policy, Jitter jitter);

  /// Returns whether requests that a caller waits for can be sent now.
  bool is_closed() const { return state_ == State::Closed; }
  /// Returns whether background requests can be sent now.
  bool is_usable() const { return state_ == State::Closed || is_slow(); }
  /// Returns whether only background requests can be sent.
  bool is_slow() const { return state_ == State::Slow || state_ == State::ProbingSlow; }
  /// Returns whether the server is known to answer, if slowly: uploads are worth their time.
  bool answers() const { return state_ == State::Closed || (is_slow() && answered_); }
  /// Returns the maximum timeout of one background request.
  Time query_timeout() const { return policy_.background_timeout(is_slow()); }
  /// Returns the time at which a probe is due, for the caller that schedules it. Valid only while not closed.
  Time probe_at() const { return probe_at_; }

  /// Records a response that took this time, with or without an entry. Returns true if this call closed the circuit.
  bool succeeded(Time took);
  /// The results of a failure for the caller, which reports `BecameSlow` and `Opened`, and schedules a probe for both.
  enum class Change : unsigned char { None, BecameSlow, Opened };
  /// Records that a request with this timeout was not answered in time.
  Change timed_out(Time now, Time timeout);
  /// Records a server error or a refused connection. Returns true if this call opened the circuit.
  bool failed(Time now);
  /// Records a response that was rejected. Returns true if this call opened the circuit.
  bool rejected(Time now);
  /// Returns whether a probe is due. If so, the caller probes the server and calls `probed`.
  bool begin_probe(Time now);
  /// Returns whether a background request that is about to compile must probe an open server first, because the last
  /// probe was long ago. If so, the caller probes the server and calls `probed`.
  bool begin_early_probe(Time now);
  /// Returns whether a probe of an open server is in progress.
  bool is_probing() const { return state_ == State::Probing; }
  /// Records the result of a probe. Returns true if background requests can be sent from now on. The circuit is closed
  /// only if the answer took at most the budget of a caller.
  bool probed(bool answered, Time now, Time took = Time(0));

 private:
  enum class State : unsigned char { Closed, Slow, ProbingSlow, Open, Probing };
  void back_off(State state, Time now);

  FleetPolicy policy_;
  Jitter jitter_;
  State state_ = State::Closed;
  Time wait_{};  // current backoff before jitter; 0 if a request has succeeded since
  Time probe_at_{};
  Time failed_at_{};  // time of the last failure or failed probe
  unsigned rejections_ = 0;
  bool answered_ = false;  // a request was answered since the circuit became slow
};

}  // namespace kiln
