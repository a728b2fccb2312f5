// SPDX-License-Identifier: Apache-2.0
#include "remote/lease_waiter.hpp"

#include <algorithm>

#include "cache/claims.hpp"

namespace kiln {
namespace {

LeaseWaiter::Time part_of(LeaseWaiter::Time time, double part) {
  return LeaseWaiter::Time(static_cast<std::int64_t>(static_cast<double>(time.count()) * part));
}

}  // namespace

LeaseWaiter::LeaseWaiter(const FleetPolicy& policy, Time wait, Time now, Jitter& jitter, bool may_hold)
    : policy_(policy), jitter_(jitter), start_(now), may_hold_(may_hold),
      step_(may_hold ? Step::Acquire : Step::Check) {
  const Time bounded = std::clamp(wait, Time(0), Time(kMaxClaimWait));
  give_up_ = now + bounded;
  hedge_at_ = now + jitter.around(part_of(bounded, policy.hedge_after_fraction), policy.jitter);
}

LeaseWaiter::Next LeaseWaiter::next(Time now) {
  if (step_ == Step::Sleep) {
    if (now >= give_up_) {
      step_ = Step::TimedOut;
    } else if (now >= sleep_until_) {
      step_ = Step::Check;
    }
  }
  return {step_, step_ == Step::Sleep ? sleep_until_ : Time(0)};
}

void LeaseWaiter::on_acquire(bool mine, Time now) {
  if (mine) {
    step_ = Step::Compile;
  } else {
    schedule_sleep(now);
  }
}

void LeaseWaiter::on_check(bool held, Time now, Time remaining) {
  if (!held) {
    // For a host that can hold no lease, this check is its first request: no other host has done the work.
    step_ = waited_ ? Step::ReleasedByOther : Step::Compile;
  } else if (may_hedge() && now >= hedge_at_ && now < give_up_) {
    // Only after a check: a hedge that is used up when the holder is already done would be missing when a holder
    // stalls.
    step_ = Step::TryHedge;
  } else {
    schedule_sleep(now, remaining);
  }
}

void LeaseWaiter::on_hedge(bool mine, Time now) {
  hedge_tried_ = true;
  if (mine) {
    step_ = Step::Hedge;
  } else {
    schedule_sleep(now);
  }
}

bool LeaseWaiter::on_failure(Time now) {
  if (!waited_ || now >= answered_ + policy_.lease_ttl) return false;
  const Time answered = answered_;
  schedule_sleep(now);
  answered_ = answered;
  return true;
}

bool LeaseWaiter::may_hedge() const { return may_hold_ && !hedge_tried_ && policy_.max_hedges > 0; }

void LeaseWaiter::schedule_sleep(Time now, Time remaining) {
  const Time maximum = std::max(policy_.initial_poll_interval, policy_.max_poll_interval);
  const Time quarter =
      waited_ ? std::clamp((now - start_) / 4, policy_.initial_poll_interval, maximum) : policy_.initial_poll_interval;
  sleep_until_ = std::min(now + jitter_.around(quarter, policy_.jitter), give_up_);
  if (remaining < maximum) {
    const Time late = part_of(std::min(remaining, policy_.takeover_jitter), jitter_.unit());
    sleep_until_ = std::min(sleep_until_, now + remaining + late);
  }
  if (may_hedge() && now < hedge_at_) sleep_until_ = std::min(sleep_until_, hedge_at_);
  waited_ = true;
  answered_ = now;
  step_ = Step::Sleep;
}

}  // namespace kiln
