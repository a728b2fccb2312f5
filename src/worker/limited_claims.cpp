// SPDX-License-Identifier: Apache-2.0
#include "worker/limited_claims.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "worker/worker_pool.hpp"

namespace kiln {
namespace {

using std::chrono::nanoseconds;

// One turn more than workers, so that a worker that ends a compile finds the next unit claimed.
constexpr unsigned kMoreThanWorkers = 1;
// Interval of polling whether another process has released a turn: an eighth of the time waited, within these limits.
constexpr nanoseconds kMinPollInterval = std::chrono::milliseconds(10);
constexpr nanoseconds kMaxPollInterval = std::chrono::milliseconds(100);
constexpr int kPartOfWait = 8;

struct ClaimWithTurn final : Claim {
  WorkerSlots::LeaseTurn turn;  // released after the claim
  std::unique_ptr<Claim> claim;
};

}  // namespace

Claims::AcquireResult LimitedClaims::acquire(const RequestKey& request, std::chrono::milliseconds wait,
                                             const RequestContext& context) {
  // A thread of an engine calls first without a wait. If that finds another holder, its wait needs no turn.
  const bool has_tried = context.waits != nullptr && wait.count() > 0;
  if (has_tried || is_urgent(request, context)) return inner_.acquire(request, wait, context);
  auto claim = std::make_unique<ClaimWithTurn>();
  auto turn = wait_for_turn(request, context);
  if (!turn && context.is_cancelled()) {
    return {Outcome::TimedOut, nullptr, "the request was canceled while it waited for a turn of this host"};
  }
  if (!turn) return inner_.acquire(request, wait, context);
  AcquireResult acquired = inner_.acquire(request, std::chrono::milliseconds(0), context);
  if (acquired.outcome == Outcome::Acquired) {
    claim->turn = std::move(*turn);
    claim->claim = std::move(acquired.claim);
    acquired.claim = std::move(claim);
    return acquired;
  }
  turn.reset();
  return acquired.outcome == Outcome::TimedOut && wait.count() > 0 ? inner_.acquire(request, wait, context)
                                                                   : std::move(acquired);
}

bool LimitedClaims::is_urgent(const RequestKey& request, const RequestContext& context) const {
  if (!context.urgent.can_be_raised()) return true;  // no engine: the caller waits, or compiles by itself
  return context.urgent.is_raised() || slots_.is_awaited(request.digest);
}

// Returns nothing if the request became urgent or was canceled, or after `kMaxTurnWait`.
std::optional<WorkerSlots::LeaseTurn> LimitedClaims::wait_for_turn(const RequestKey& request,
                                                                   const RequestContext& context) const {
  const unsigned turns = std::max(max_workers_ ? *max_workers_ : recommended_workers(), 1U) + kMoreThanWorkers;
  const nanoseconds start = clock_.steady();
  for (;;) {
    if (auto turn = slots_.take_lease_turn(turns)) return turn;
    const nanoseconds waited = clock_.steady() - start;
    const bool is_over = context.deadline && context.deadline->remaining() <= nanoseconds(0);
    if (waited >= kMaxTurnWait || is_over || context.is_cancelled() || is_urgent(request, context)) return std::nullopt;
    context.sleep(clock_, std::clamp(waited / kPartOfWait, kMinPollInterval, kMaxPollInterval));
  }
}

}  // namespace kiln
