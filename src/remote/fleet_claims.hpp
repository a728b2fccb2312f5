#pragma once

#include <memory>

#include "base/clock.hpp"
#include "claim/claims.hpp"
#include "observe/observer.hpp"
#include "remote/courier.hpp"
#include "remote/fleet_policy.hpp"
#include "remote/lease_table.hpp"
#include "remote/server_guard.hpp"

namespace kiln {

/// Claims among the hosts of a fleet, by leases in a table that all of them reach. Holding one renews it until it is
/// let go, from one thread for all of them; letting go happens on the courier's thread, behind the uploads that were
/// sent before, so that whoever waited finds what was published. A table that cannot be asked is Outcome::Unavailable,
/// at once while its guard has given it up. A hedge is Outcome::Mine with a claim that holds nothing, and an event
/// (Hedged). Any thread. A lease is renewed no longer than `most_held`: a compile that hangs must not hold up a fleet.
class FleetClaims final : public Claims {
 public:
  struct Parts {
    std::shared_ptr<LeaseTable> table;
    std::shared_ptr<ServerGuard> guard;
    /// Of the store in which holders publish. While that is given up nobody is waited for, and the table is not asked:
    /// what another host compiles could not be had. Null: it always can.
    std::shared_ptr<const ServerGuard> store;
    std::shared_ptr<Courier> courier;
    FleetPolicy policy;
    Observer observer;
    const Clock* clock = &system_clock();
    /// False for hosts that could not publish: they wait for others and hold no lease. Then Outcome::Mine has a claim
    /// that holds nothing.
    bool may_hold = true;
    std::chrono::nanoseconds most_held = std::chrono::minutes(10);
  };
  explicit FleetClaims(Parts parts);

  Answer acquire(const RequestKey& request, std::chrono::milliseconds wait, const std::stop_token& stop = {}) override;

  struct State;

 private:
  std::shared_ptr<State> state_;  // claims outlive their party
};

}  // namespace kiln
