#include "remote/breaker.hpp"

#include <algorithm>

namespace kiln {

Breaker::Breaker(const FleetPolicy& policy, Jitter jitter) : policy_(policy), jitter_(jitter) {}

void Breaker::succeeded() {
  if (state_ != State::Closed) return;  // asked before it was given up; the probe decides
  wait_ = Time(0);
  rejections_ = 0;
}

bool Breaker::failed(Time now) {
  if (state_ != State::Closed) return false;
  open(now);
  return true;
}

bool Breaker::rejected(Time now) {
  if (state_ != State::Closed || ++rejections_ < policy_.rejections_in_a_row) return false;
  open(now);
  return true;
}

bool Breaker::begin_probe(Time now) {
  if (state_ != State::Open || now < probe_at_) return false;
  state_ = State::Probing;
  return true;
}

bool Breaker::probed(bool answered, Time now) {
  if (state_ != State::Probing) return false;
  if (!answered) {
    open(now);
    return false;
  }
  state_ = State::Closed;
  return true;
}

void Breaker::open(Time now) {
  wait_ = wait_ == Time(0) ? policy_.open_first : std::min(2 * wait_, policy_.open_most);
  probe_at_ = now + jitter_.around(wait_, policy_.jitter);
  rejections_ = 0;
  state_ = State::Open;
}

}  // namespace kiln
