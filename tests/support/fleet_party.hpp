#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "remote/fleet_claims.hpp"

namespace kiln::test {

/// The numbers of a fleet in which everything happens several times as fast, so that tests of it need few seconds.
inline FleetPolicy quick_fleet(std::chrono::milliseconds lease = std::chrono::milliseconds(1000)) {
  FleetPolicy policy;
  policy.lease = lease;
  policy.poll_first = std::chrono::milliseconds(10);
  policy.poll_most = std::chrono::milliseconds(200);
  policy.lapse_spread = std::chrono::milliseconds(100);
  policy.budget = std::chrono::seconds(2);  // what a crowded machine needs; tests of the budget set their own
  policy.hedges = 0;                        // likewise those of hedges
  return policy;
}

/// How soon after its holder's death a claim of such a fleet can be had again.
inline std::chrono::milliseconds quick_takeover() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(quick_fleet().lease) + std::chrono::seconds(1);
}

/// The parts of claims on a table, guarded as a session guards them. Without a courier, unless one is given: letting go
/// is done when it returns.
inline FleetClaims::Parts fleet_parts(std::shared_ptr<LeaseTable> table, const FleetPolicy& policy = quick_fleet(),
                                      const Observer& observer = {}) {
  FleetClaims::Parts parts;
  parts.table = std::move(table);
  parts.policy = policy;
  parts.observer = observer;
  ServerGuard::Parts guard;
  guard.name = parts.table->describe();
  guard.probe = [asked = parts.table](std::chrono::nanoseconds limit) { return asked->probe(limit); };
  guard.courier = std::make_shared<Courier>(policy);
  guard.policy = policy;
  guard.observer = observer;
  parts.guard = ServerGuard::make(std::move(guard));
  return parts;
}

}  // namespace kiln::test
