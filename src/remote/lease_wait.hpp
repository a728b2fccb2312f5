#pragma once

#include <chrono>

#include "remote/fleet_policy.hpp"
#include "remote/jitter.hpp"

namespace kiln {

/// What a host that wants to compile a request does next, from its first question to its answer. Pure: it is told the
/// time and what the lease table answered, and says what to ask next, so that a host and a simulation take the same
/// steps. Not thread-safe; one for each wait.
///
///   Take ─ mine ───────────────────────────────► Compile
///     └─ another's ─► Nap ─► Peek ─ held ─► Nap …  ├─ hedge drawn ─► Compile, besides the holder
///                              └─ free ─► Finished ├─ time is up ──► GiveUp
class LeaseWait {
 public:
  using Time = std::chrono::nanoseconds;
  enum class Step : unsigned char {
    Take,      ///< ask the table for the lease, then say `took`
    Peek,      ///< ask whether another still holds it, then say `peeked`
    Draw,      ///< ask for a hedge, then say `drew`
    Nap,       ///< do nothing until `until`
    Compile,   ///< mine
    Hedge,     ///< a hedge: compile, though another holds the lease
    Finished,  ///< whoever held it let go, or its lease lapsed: look in the store, then begin anew
    GiveUp,    ///< waited long enough: compile for oneself
  };
  struct Next {
    Step step = Step::Take;
    Time until{};  ///< of a nap
  };

  /// `wait`: how long to wait for another holder, from `now`; zero never waits. `may_hold` is false for those who could
  /// not publish what they compile: they begin with a Peek, wait for others, and hold up nobody.
  LeaseWait(const FleetPolicy& policy, Time wait, Time now, Jitter& jitter, bool may_hold = true);

  Next next(Time now);
  void took(bool mine, Time now);
  /// `left`: of the lease, where the table says so. A nap does not last past its end, or a holder that died would be
  /// succeeded as much later as this one naps.
  void peeked(bool held, Time now, Time left = Time::max());
  void drew(bool mine, Time now);

 private:
  void nap(Time now, Time left = Time::max());
  bool may_draw() const;

  FleetPolicy policy_;
  Jitter& jitter_;
  Time start_;
  Time give_up_;
  Time hedge_at_;
  Time nap_until_{};
  bool may_hold_;
  bool hedge_tried_ = false;
  bool waited_ = false;
  Step step_ = Step::Take;
};

}  // namespace kiln
