#include "remote/lease_wait.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr LeaseWait::Time kForever = std::chrono::hours(24 * 365);  // longer waits would overflow the nanoseconds

LeaseWait::Time part_of(LeaseWait::Time time, double part) {
  return LeaseWait::Time(static_cast<std::int64_t>(static_cast<double>(time.count()) * part));
}

}  // namespace

LeaseWait::LeaseWait(const FleetPolicy& policy, Time wait, Time now, Jitter& jitter, bool may_hold)
    : policy_(policy), jitter_(jitter), start_(now), may_hold_(may_hold), step_(may_hold ? Step::Take : Step::Peek) {
  const Time bounded = std::clamp(wait, Time(0), kForever);
  give_up_ = now + bounded;
  hedge_at_ = now + jitter.around(part_of(bounded, policy.hedge_at), policy.jitter);
}

LeaseWait::Next LeaseWait::next(Time now) {
  if (step_ == Step::Nap) {
    if (now >= give_up_) {
      step_ = Step::GiveUp;
    } else if (now >= nap_until_) {
      step_ = Step::Peek;
    }
  }
  return {step_, step_ == Step::Nap ? nap_until_ : Time(0)};
}

void LeaseWait::took(bool mine, Time now) {
  if (mine) {
    step_ = Step::Compile;
  } else {
    nap(now);
  }
}

void LeaseWait::peeked(bool held, Time now, Time left) {
  if (!held) {
    // Whoever may hold no lease has asked by this peek alone; nobody has done the work for him.
    step_ = waited_ ? Step::Finished : Step::Compile;
  } else if (may_draw() && now >= hedge_at_ && now < give_up_) {
    // Behind a peek and not before: a hedge drawn when the holder is done would be missing when one stalls.
    step_ = Step::Draw;
  } else {
    nap(now, left);
  }
}

void LeaseWait::drew(bool mine, Time now) {
  hedge_tried_ = true;
  if (mine) {
    step_ = Step::Hedge;
  } else {
    nap(now);
  }
}

bool LeaseWait::may_draw() const { return may_hold_ && !hedge_tried_ && policy_.hedges > 0; }

void LeaseWait::nap(Time now, Time left) {
  const Time most = std::max(policy_.poll_first, policy_.poll_most);
  const Time quarter = waited_ ? std::clamp((now - start_) / 4, policy_.poll_first, most) : policy_.poll_first;
  nap_until_ = std::min(now + jitter_.around(quarter, policy_.jitter), give_up_);
  if (left < most) {
    const Time late = part_of(std::min(left, policy_.lapse_spread), jitter_.unit());
    nap_until_ = std::min(nap_until_, now + left + late);
  }
  if (may_draw() && now < hedge_at_) nap_until_ = std::min(nap_until_, hedge_at_);
  waited_ = true;
  step_ = Step::Nap;
}

}  // namespace kiln
