// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>

#include "base/clock.hpp"
#include "base/urgency.hpp"
#include "core/server_time_budget.hpp"

namespace kiln {

class EarlyCompile;
class WaitObserver;

/// The conditions under which one request is served. Passed by reference from the caller to the stores, claims and
/// compilers. It is not part of any key and not sent to workers. A value type; only the thread that serves the request
/// uses it.
struct RequestContext {
  std::uint64_t task_id = 0;                  ///< id of the compile task in this process, for events
  std::optional<Deadline> deadline = {};      ///< end of the waits for other processes; nothing means no limit
  std::stop_token stop = {};                  ///< requests cancellation
  ServerTimeBudget* server_budget = nullptr;  ///< of all servers together; null means each store's own limit
  /// Time of the request (steady clock). A file check that is not older is reused; nothing means that none is reused.
  std::optional<std::chrono::nanoseconds> requested_at = {};
  Urgency urgent = {};             ///< whether a caller waits for the result; can change while the request is served
  WaitObserver* waits = nullptr;   ///< notified about waits for other processes; null means none
  EarlyCompile* early = nullptr;   ///< compile of this request that has started already; null means none
  std::size_t queued_similar = 0;  ///< number of queued units of the same kind and target; an estimate

  /// Returns whether the result is no longer needed. Code that waits calls it after each `sleep`.
  bool is_cancelled() const { return stop.stop_requested() || (interrupt() != nullptr && interrupt()->poll()); }
  /// Returns whether no caller waits for the result yet.
  bool is_background() const { return urgent.can_be_raised() && !urgent.is_raised(); }
  /// Sleeps for `time`, or until the request is canceled. A stop ends the sleep at once. With an interrupt check it
  /// sleeps less, so that Ctrl-C ends a wait within 0.1 s.
  void sleep(const Clock& clock, std::chrono::nanoseconds time) const;
  /// Returns the deadline of one query of a server: `maximum` from now, or less if the budget has less.
  Deadline server_deadline(const Clock& clock, std::chrono::nanoseconds maximum) const {
    return {clock, server_budget != nullptr ? server_budget->capped(maximum) : maximum, interrupt()};
  }
  /// Returns a copy with another server budget, which must outlive it.
  RequestContext with_budget(ServerTimeBudget& budget) const {
    RequestContext copy = *this;
    copy.server_budget = &budget;
    return copy;
  }

 private:
  InterruptCheck* interrupt() const { return deadline ? deadline->interrupt() : nullptr; }
};

}  // namespace kiln
