// SPDX-License-Identifier: Apache-2.0
#include "remote/server_guard.hpp"

#include <new>

#include "base/catch_to_error.hpp"

namespace kiln {

std::shared_ptr<ServerGuard> ServerGuard::make(Params params) {
  return std::shared_ptr<ServerGuard>(new ServerGuard(std::move(params)));
}

ServerGuard::ServerGuard(Params params)
    : params_(std::move(params)), breaker_(params_.policy, Jitter::from_random_seed()) {}

bool ServerGuard::is_available() const {
  const MutexLock lock(mutex_);
  return breaker_.is_closed();
}

ServerGuard::Time ServerGuard::time_budget(const ServerTimeBudget* budget) {
  if (!is_available()) {
    if (probe_not_scheduled_.exchange(false)) schedule_probe();
    return Time(0);
  }
  return params_.policy.usable_budget(budget == nullptr ? params_.policy.budget : budget->remaining());
}

void ServerGuard::on_failure(const Error& error) {
  {
    const MutexLock lock(mutex_);
    if (!breaker_.failed(params_.clock->steady())) return;
  }
  open_circuit(error.message);
}

void ServerGuard::on_rejected() {
  {
    const MutexLock lock(mutex_);
    if (!breaker_.rejected(params_.clock->steady())) return;
  }
  open_circuit(std::to_string(params_.policy.max_consecutive_rejections) + " consecutive responses were rejected");
}

void ServerGuard::open_circuit(const std::string& reason) {
  ignore_failures(
      [&] { params_.emitter.emit(Event::Kind::RemoteUnavailable, params_.origin, params_.name + ": " + reason); });
  schedule_probe();
}

void ServerGuard::schedule_probe() {
  Time at{};
  {
    const MutexLock lock(mutex_);
    at = breaker_.probe_at();
  }
  try {
    params_.background_queue->enqueue_at(at, [weak = weak_from_this()] {
      if (const auto guard = weak.lock()) guard->probe();
    });
  } catch (const std::bad_alloc&) {
    probe_not_scheduled_ = true;  // the next caller schedules it
  }
}

void ServerGuard::probe() {
  {
    const MutexLock lock(mutex_);
    if (!breaker_.begin_probe(params_.clock->steady())) return;
  }
  // With the timeout of a lookup: a server that needs longer would fail the next lookup too.
  const Status answer = catch_to_error([&] { return params_.probe(params_.policy.budget); });
  bool back = false;
  {
    const MutexLock lock(mutex_);
    back = breaker_.probed(answer.has_value(), params_.clock->steady());
  }
  if (back) {
    ignore_failures(
        [&] { params_.emitter.emit(Event::Kind::RemoteRecovered, params_.origin, params_.name + " has recovered"); });
  } else {
    schedule_probe();
  }
}

ServerGuard::Call::Call(ServerGuard& guard, ServerTimeBudget* budget)
    : guard_(guard), budget_(budget), start_(guard.params_.clock->steady()) {}

ServerGuard::Call::~Call() {
  if (!reported_) {
    const MutexLock lock(guard_.mutex_);
    guard_.breaker_.succeeded();
  }
  if (budget_ != nullptr) budget_->charge(guard_.params_.clock->steady() - start_);
}

void ServerGuard::Call::failed(const Error& error) {
  reported_ = true;
  switch (error.code) {
    case Code::TimedOut:
    case Code::Unavailable:
    case Code::Io:
    case Code::Denied: guard_.on_failure(error); break;
    case Code::Corrupt: guard_.on_rejected(); break;
    default: break;
  }
}

void ServerGuard::Call::rejected() {
  reported_ = true;
  guard_.on_rejected();
}

}  // namespace kiln
