// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "cache/claims.hpp"
#include "events/event_emitter.hpp"
#include "remote/background_queue.hpp"
#include "remote/fleet_policy.hpp"
#include "remote/lease_table.hpp"
#include "remote/server_guard.hpp"

namespace kiln {

/// Claims among the hosts of a fleet, by leases in a shared table. One thread renews all held leases until they are
/// released, but none longer than `max_hold`: a compile that hangs must not block a fleet. Releases run on the
/// background queue after the uploads that were queued before them, so that waiters find the published entry. If the
/// table cannot be reached, the result is Outcome::Unavailable, immediately while its circuit is open. A hedge is
/// Outcome::Acquired with a claim without a lease, and emits an event (Hedged). Thread-safe.
///
/// The states of a lease in the table, and the functions that change them:
///
///          acquire: LeaseTable::try_acquire
///   free ────────────────────────────────────► held ◄──┐ LeaseRenewer::renew: LeaseTable::renew,
///    ▲                                         │ │ └───┘ every third of `lease_ttl`
///    ├─ HeldLease::release: LeaseTable::release┘ │
///    │                                           ▼ not renewed for `lease_ttl`
///    └─ Redis deletes the record ◄─────────── expired ── try_acquire of another host ──► held by that host
///
/// A lease is lost for its holder after `max_hold`, if the table is out of reach for `lease_ttl`, or if the table
/// reports another owner or none: LeaseRenewer::renew ends its renewals and has LeaseLost emitted. The compile
/// continues, and `release` changes no lease of another owner. The lease of a process that ended expires. A hedge
/// (LeaseTable::try_hedge) and a compile after a timeout leave the lease as it is. LeaseWaiter has the states of a host
/// that waits for a lease.
class FleetClaims final : public Claims {
 public:
  struct Params {
    std::shared_ptr<LeaseTable> table;
    std::shared_ptr<ServerGuard> guard;
    /// Guard of the store to which holders publish. While its circuit is open, this host neither waits for others nor
    /// queries the table, because it could not fetch their results. Null means always available.
    std::shared_ptr<const ServerGuard> store;
    std::shared_ptr<BackgroundQueue> background_queue;
    FleetPolicy policy;
    EventEmitter emitter;
    const Clock* clock = &system_clock();
    /// False for hosts that cannot publish. They wait for others and hold no lease; Outcome::Acquired then has a claim
    /// without a lease.
    bool can_publish = true;
    std::chrono::nanoseconds max_hold = std::chrono::minutes(10);
  };
  explicit FleetClaims(Params params);

  AcquireResult acquire(const RequestKey& request, std::chrono::milliseconds wait,
                        const RequestContext& context) override;

  struct State;

 private:
  std::shared_ptr<State> state_;  // claims may outlive this object
};

}  // namespace kiln
