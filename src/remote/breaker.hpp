#pragma once

#include <chrono>

#include "remote/fleet_policy.hpp"
#include "remote/jitter.hpp"

namespace kiln {

/// Whether a server is worth asking. Pure: it is told the time, so that a simulation can drive it. Not thread-safe.
///
/// Closed: it is asked. One failure opens it, because the next caller must not pay for what is known already; open:
/// nobody asks. After a while, jittered and doubled from one failed probe to the next, a probe is due: not a caller's
/// lookup but a question that nobody waits for. A probe that succeeds closes it; the waits begin anew only when a
/// question has been answered too, or a server that answers nothing but probes would cost somebody its time every time.
class Breaker {
 public:
  using Time = std::chrono::nanoseconds;

  Breaker(const FleetPolicy& policy, Jitter jitter);

  /// Whether to ask now.
  bool closed() const { return state_ == State::Closed; }
  /// When a probe is due, for whoever has to arrange it. Only while open.
  Time probe_at() const { return probe_at_; }

  /// It answered, with or without an entry.
  void succeeded();
  /// It did not, or said that it is in trouble. True where this opened it: somebody has to be told, and to probe.
  bool failed(Time now);
  /// It answered what had to be rejected. True where that opened it.
  bool rejected(Time now);
  /// Whether a probe is due; where it is, the caller makes it and says `probed`.
  bool begin_probe(Time now);
  /// True where this closed it.
  bool probed(bool answered, Time now);

 private:
  enum class State : unsigned char { Closed, Open, Probing };
  void open(Time now);

  FleetPolicy policy_;
  Jitter jitter_;
  State state_ = State::Closed;
  Time wait_{};  // the latest, before jitter; zero: it has answered since
  Time probe_at_{};
  unsigned rejections_ = 0;
};

}  // namespace kiln
