// SPDX-License-Identifier: Apache-2.0
#include "remote/circuit_breaker.hpp"

#include <algorithm>

namespace kiln {

CircuitBreaker::CircuitBreaker(const FleetPolicy& policy, Jitter jitter) : policy_(policy), jitter_(jitter) {}

void CircuitBreaker::succeeded() {
  if (state_ != State::Closed) return;  // the request started before the circuit opened; the probe decides
  wait_ = Time(0);
  rejections_ = 0;
}

bool CircuitBreaker::failed(Time now) {
  if (state_ != State::Closed) return false;
  open(now);
  return true;
}

bool CircuitBreaker::rejected(Time now) {
  if (state_ != State::Closed || ++rejections_ < policy_.max_consecutive_rejections) return false;
  open(now);
  return true;
}

bool CircuitBreaker::begin_probe(Time now) {
  if (state_ != State::Open || now < probe_at_) return false;
  state_ = State::Probing;
  return true;
}

bool CircuitBreaker::probed(bool answered, Time now) {
  if (state_ != State::Probing) return false;
  if (!answered) {
    open(now);
    return false;
  }
  state_ = State::Closed;
  return true;
}

void CircuitBreaker::open(Time now) {
  wait_ = wait_ == Time(0) ? policy_.initial_backoff : std::min(2 * wait_, policy_.max_backoff);
  probe_at_ = now + jitter_.around(wait_, policy_.jitter);
  rejections_ = 0;
  state_ = State::Open;
}

}  // namespace kiln
