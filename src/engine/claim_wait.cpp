// SPDX-License-Identifier: Apache-2.0
#include "engine/claim_wait.hpp"

#include <optional>
#include <stop_token>

#include "core/wait_observer.hpp"

namespace kiln {

// The wait is reported only if another holder has the claim. If the claim is free, the thread compiles at once.
Claims::AcquireResult ClaimWait::acquire(Claims& claims, const RequestKey& key, std::chrono::milliseconds wait) {
  const bool is_visible = slots_ != nullptr && !awaited_;
  if (context_.waits == nullptr && !is_visible) return claims.acquire(key, wait, context_);
  Claims::AcquireResult acquired = claims.acquire(key, std::chrono::milliseconds(0), context_);
  if (acquired.outcome != Claims::Outcome::TimedOut || wait.count() == 0) return acquired;
  std::optional<WaitObserver::Scope> scope;
  if (context_.waits != nullptr) scope.emplace(*context_.waits);
  return is_visible ? wait_visibly(claims, key, wait) : claims.acquire(key, wait, context_);
}

// Waits with background priority until a caller waits for the unit.
Claims::AcquireResult ClaimWait::wait_visibly(Claims& claims, const RequestKey& key, std::chrono::milliseconds wait) {
  if (!context_.urgent.is_raised()) {
    const auto start = clock_.steady();
    std::stop_source until;
    const auto end = [&] { until.request_stop(); };
    const std::stop_callback on_stop(context_.stop, end);
    const std::stop_callback on_urgent(context_.urgent.token(), end);
    RequestContext until_urgent = context_;
    until_urgent.stop = until.get_token();
    Claims::AcquireResult acquired = claims.acquire(key, wait, until_urgent);
    wait -= std::chrono::duration_cast<std::chrono::milliseconds>(clock_.steady() - start);
    const bool goes_on = acquired.outcome == Claims::Outcome::TimedOut && context_.urgent.is_raised();
    if (!goes_on || context_.stop.stop_requested() || wait.count() <= 0) return acquired;
  }
  // Uses the request itself, because the holder of a takeover compiles the same one.
  awaited_ = slots_->await(request_.digest);
  return claims.acquire(key, wait, context_);
}

}  // namespace kiln
