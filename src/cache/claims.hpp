// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <kiln/key.hpp>

#include "core/request_context.hpp"

namespace kiln {

/// The right to compile a request, held until destruction. It only saves work: a lost claim costs a duplicate compile.
/// Can be released on a different thread than the one that acquired it.
class Claim {
 public:
  virtual ~Claim() = default;
};

/// Lets one party at a time compile a request, among all that share these claims. Every implementation passes
/// tests/conformance/claims_conformance.hpp. Thread-safe.
class Claims {
 public:
  enum class Outcome {
    Acquired,         ///< `claim` is set: compile, publish, then release it
    ReleasedByOther,  ///< another party released it during the wait: check the store, then acquire again
    TimedOut,         ///< another party still holds it: check the store, then acquire its takeover
    Unavailable,      ///< claims do not work here (see `reason`): check the store, then compile without one
  };
  struct AcquireResult {
    Outcome outcome = Outcome::Unavailable;
    std::unique_ptr<Claim> claim;
    std::string reason;
  };

  virtual ~Claims() = default;
  /// Waits at most `wait` for another holder; 0 means do not wait. A wait that `context` cancels ends within half a
  /// second as if it had timed out. A wait for a stopped holder (SIGSTOP, a debugger) ends a few seconds after the stop
  /// was first detected: as `TimedOut`, or as `ReleasedByOther` if the claim expires by itself.
  virtual AcquireResult acquire(const RequestKey& request, std::chrono::milliseconds wait,
                                const RequestContext& context) = 0;
};

/// The longest wait for a holder. Longer ones would overflow the nanoseconds of the clock.
inline constexpr std::chrono::milliseconds kMaxClaimWait = std::chrono::hours(24 * 365);

/// A host waits this many times as long for another host as a process waits for one of the same host. All hosts that
/// give up compile, and a holder is slow if its host shares its cores with others (containers).
inline constexpr int kFleetWaitFactor = 2;

/// Number of holders of one request that can hang in sequence before every process compiles for itself.
inline constexpr int kMaxTakeovers = 3;

/// Returns the request key with which exactly one of the parties that stopped waiting for the holder of `request`
/// replaces it. It is claimed like any other request, and the other parties wait for it. Level 0 is the request itself,
/// level 1 its takeover, level 2 the takeover of a hung holder of level 1, and so on.
RequestKey takeover_of(const RequestKey& request, int level);

/// The time for which a waiter has seen the holder of a claim stopped. A value type. Not thread-safe.
class StoppedHolder {
 public:
  /// Time to wait for a stopped holder; covers a breakpoint in a debugger and Ctrl-Z followed by fg.
  static constexpr std::chrono::seconds kHangTimeout{2};

  /// Records whether the holder is stopped at `now` (steady clock). Returns true once it has been stopped for
  /// `kHangTimeout`.
  bool is_given_up(bool is_stopped, std::chrono::nanoseconds now) {
    if (!is_stopped) since_.reset();
    if (is_stopped && !since_) since_ = now;
    return since_ && now - *since_ >= kHangTimeout;
  }

 private:
  std::optional<std::chrono::nanoseconds> since_;
};

}  // namespace kiln
