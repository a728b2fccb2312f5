// SPDX-License-Identifier: Apache-2.0
#include "remote/circuit_breaker.hpp"

#include <algorithm>
#include <utility>

namespace kiln {

CircuitBreaker::CircuitBreaker(const FleetPolicy& policy, Jitter jitter) : policy_(policy), jitter_(jitter) {}

bool CircuitBreaker::succeeded(Time took) {
  if (!is_usable()) return false;  // the request started before the circuit opened; the probe decides
  answered_ = true;
  rejections_ = 0;
  if (took > policy_.budget) return false;  // too slow for a caller that waits
  wait_ = Time(0);
  return std::exchange(state_, State::Closed) != State::Closed;
}

CircuitBreaker::Change CircuitBreaker::timed_out(Time now, Time timeout) {
  if (state_ == State::Closed) {
    answered_ = false;
    back_off(State::Slow, now);
    return Change::BecameSlow;
  }
  if (!is_slow() || timeout < policy_.background_timeout(true)) return Change::None;
  back_off(State::Open, now);
  return Change::Opened;
}

bool CircuitBreaker::failed(Time now) {
  if (!is_usable()) return false;
  back_off(State::Open, now);
  return true;
}

bool CircuitBreaker::rejected(Time now) {
  if (!is_usable() || ++rejections_ < policy_.max_consecutive_rejections) return false;
  back_off(State::Open, now);
  return true;
}

bool CircuitBreaker::begin_probe(Time now) {
  if ((state_ != State::Open && state_ != State::Slow) || now < probe_at_) return false;
  state_ = is_slow() ? State::ProbingSlow : State::Probing;
  return true;
}

bool CircuitBreaker::begin_early_probe(Time now) {
  if (state_ != State::Open || now < failed_at_ + policy_.early_probe_interval) return false;
  state_ = State::Probing;
  return true;
}

bool CircuitBreaker::probed(bool answered, Time now, Time took) {
  if (state_ != State::Probing && state_ != State::ProbingSlow) return false;
  if (!answered) {
    back_off(is_slow() ? State::Slow : State::Open, now);
    return false;
  }
  if (took > policy_.budget) {
    back_off(State::Slow, now);
    answered_ = true;
  } else {
    state_ = State::Closed;
  }
  return true;
}

void CircuitBreaker::back_off(State state, Time now) {
  wait_ = wait_ == Time(0) ? policy_.initial_backoff : std::min(2 * wait_, policy_.max_backoff);
  probe_at_ = now + jitter_.around(wait_, policy_.jitter);
  failed_at_ = now;
  rejections_ = 0;
  state_ = state;
}

}  // namespace kiln
