// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "remote/fleet_policy.hpp"
#include "remote/jitter.hpp"

namespace kiln {

/// The circuit breaker of one server. A pure state machine: the caller passes the time, so that a simulation can drive
/// it. Not thread-safe.
///
/// Closed: callers send requests. One failure opens the circuit, so that the next caller does not pay for a known
/// failure. Open: callers send no requests. After a backoff, which has jitter and doubles with each failed probe, a
/// probe is due. A probe is a separate request that no caller waits for. A successful probe closes the circuit. The
/// backoff is reset only when a regular request succeeds too; otherwise a server that answers only probes would delay
/// a caller after every probe.
class CircuitBreaker {
 public:
  using Time = std::chrono::nanoseconds;

  CircuitBreaker(const FleetPolicy& policy, Jitter jitter);

  /// Returns whether callers can send a request now.
  bool is_closed() const { return state_ == State::Closed; }
  /// Returns the time at which a probe is due, for the caller that schedules it. Valid only while open.
  Time probe_at() const { return probe_at_; }

  /// Records a response, with or without an entry.
  void succeeded();
  /// Records a missing response or a server error. Returns true if this call opened the circuit; the caller then
  /// reports it and schedules a probe.
  bool failed(Time now);
  /// Records a response that was rejected. Returns true if this call opened the circuit.
  bool rejected(Time now);
  /// Returns whether a probe is due. If so, the caller probes the server and calls `probed`.
  bool begin_probe(Time now);
  /// Records the result of a probe. Returns true if this call closed the circuit.
  bool probed(bool answered, Time now);

 private:
  enum class State : unsigned char { Closed, Open, Probing };
  void open(Time now);

  FleetPolicy policy_;
  Jitter jitter_;
  State state_ = State::Closed;
  Time wait_{};  // current backoff before jitter; 0 if a request has succeeded since
  Time probe_at_{};
  unsigned rejections_ = 0;
};

}  // namespace kiln
