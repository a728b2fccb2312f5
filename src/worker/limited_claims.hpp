// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.hpp"
#include "cache/claims.hpp"
#include "worker/worker_slots.hpp"

namespace kiln {

/// Claims of a fleet of which this host holds only as many as it can compile at a time. Without the limit, the first of
/// several hosts that start together would hold the leases of all units while they wait for its workers, and the
/// workers of the other hosts would be idle.
///
/// A process needs one of the host's turns to acquire a claim and keeps it with the claim. It acquires without a turn
/// if a caller waits for the unit, or after `kMaxTurnWait`. An `acquire` that may not wait for another holder does wait
/// for a turn. Thread-safe.
class LimitedClaims final : public Claims {
 public:
  static constexpr std::chrono::seconds kMaxTurnWait{10};

  /// `inner` and `slots` are not owned. `max_workers` is the setting; nothing means determined by cores and memory.
  LimitedClaims(Claims& inner, const WorkerSlots& slots, std::optional<unsigned> max_workers,
                const Clock& clock = system_clock())
      : inner_(inner), slots_(slots), max_workers_(max_workers), clock_(clock) {}

  AcquireResult acquire(const RequestKey& request, std::chrono::milliseconds wait,
                        const RequestContext& context) override;

 private:
  bool is_urgent(const RequestKey& request, const RequestContext& context) const;
  std::optional<WorkerSlots::LeaseTurn> wait_for_turn(const RequestKey& request, const RequestContext& context) const;

  Claims& inner_;
  const WorkerSlots& slots_;
  const std::optional<unsigned> max_workers_;
  const Clock& clock_;
};

}  // namespace kiln
