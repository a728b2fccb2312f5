// SPDX-License-Identifier: Apache-2.0
#include "remote/server_guard.hpp"

#include <algorithm>
#include <new>

#include "base/catch_to_error.hpp"
#include "remote/query_deadline.hpp"

namespace kiln {

std::shared_ptr<ServerGuard> ServerGuard::make(Params params) {
  return std::shared_ptr<ServerGuard>(new ServerGuard(std::move(params)));
}

ServerGuard::ServerGuard(Params params)
    : params_(std::move(params)), breaker_(params_.policy, Jitter::from_random_seed()) {}

bool ServerGuard::is_available() const {
  const MutexLock lock(mutex_);
  return breaker_.answers();
}

bool ServerGuard::accepts(const ServerTimeBudget* budget) const {
  const MutexLock lock(mutex_);
  return budget == nullptr || budget->is_background() ? breaker_.is_usable() : breaker_.is_closed();
}

ServerGuard::Time ServerGuard::time_budget(const ServerTimeBudget* budget) {
  if (!accepts(budget)) {
    if (probe_not_scheduled_.exchange(false)) schedule_probe();
    return Time(0);
  }
  if (budget != nullptr && !budget->is_background()) return params_.policy.usable_budget(budget->remaining());
  const MutexLock lock(mutex_);
  if (budget == nullptr) return breaker_.query_timeout();
  return std::min(breaker_.query_timeout(), params_.policy.usable_budget(budget->remaining()));
}

bool ServerGuard::is_slow() const {
  const MutexLock lock(mutex_);
  return breaker_.is_slow();
}

ServerGuard::Time ServerGuard::urgent_timeout() const {
  return is_slow() ? Time(0) : params_.policy.usable_budget(params_.policy.budget);
}

void ServerGuard::recheck(const ServerTimeBudget* budget) {
  if (budget == nullptr || !budget->is_background() || budget->remaining() <= Time(0)) return;
  {
    const MutexLock lock(mutex_);
    if (!breaker_.begin_early_probe(params_.clock->steady())) {
      const QueryDeadline wait(*params_.clock, params_.policy.probe_timeout(), budget, Time(0));
      const Deadline& deadline = wait.deadline();
      while (breaker_.is_probing() && deadline.remaining() > Time(0))
        params_.clock->wait_until(probed_, mutex_, deadline);
      return;
    }
  }
  run_probe(budget);
}

void ServerGuard::on_success(Time took) {
  {
    const MutexLock lock(mutex_);
    if (!breaker_.succeeded(took)) return;
  }
  emit_recovered();
}

void ServerGuard::emit_recovered() const {
  ignore_failures(
      [&] { params_.emitter.emit(Event::Kind::RemoteRecovered, params_.origin, params_.name + " has recovered"); });
}

void ServerGuard::on_timeout(const Error& error, Time timeout) {
  CircuitBreaker::Change change{};
  {
    const MutexLock lock(mutex_);
    change = breaker_.timed_out(params_.clock->steady(), timeout);
  }
  if (change == CircuitBreaker::Change::Opened) open_circuit(error.message);
  if (change == CircuitBreaker::Change::BecameSlow)
    open_circuit(error.message + "; only background requests use it until it is fast again");
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
  run_probe(nullptr);
}

void ServerGuard::run_probe(const ServerTimeBudget* budget) {
  const Time start = params_.clock->steady();
  // No caller pays for a probe of a server that has failed.
  const QueryDeadline limit(*params_.clock, params_.policy.probe_timeout(), budget, Time(0));
  const Status answer = catch_to_error([&] { return params_.probe(limit.deadline()); });
  bool back = false;
  bool usable = false;
  {
    const MutexLock lock(mutex_);
    const bool was_open = breaker_.is_probing();
    const Time now = params_.clock->steady();
    back = breaker_.probed(answer.has_value(), now, now - start) && breaker_.is_closed();
    usable = answer.has_value() && breaker_.is_usable();
    if (usable && was_open) ++recoveries_;
    probed_.notify_all();
  }
  if (back) {
    emit_recovered();
  } else {
    schedule_probe();
  }
}

ServerGuard::Call::Call(ServerGuard& guard, ServerTimeBudget* budget, Time timeout)
    : guard_(guard), budget_(budget), timeout_(timeout), start_(guard.params_.clock->steady()) {}

ServerGuard::Call::~Call() {
  const Time took = guard_.params_.clock->steady() - start_;
  if (!reported_) guard_.on_success(took);
  if (budget_ != nullptr) budget_->charge(took);
}

void ServerGuard::Call::failed(const Error& error) {
  reported_ = true;
  switch (error.code) {
    case Code::TimedOut: guard_.on_timeout(error, timeout_); break;
    case Code::Unavailable:
    case Code::Io:
    case Code::Denied: guard_.on_failure(error); break;
    case Code::Corrupt: guard_.on_rejected(); break;
    default: break;
  }
}

void ServerGuard::Call::timed_out(const Error& error) {
  reported_ = true;
  guard_.on_timeout(error, guard_.params_.clock->steady() - start_);
}

void ServerGuard::Call::rejected() {
  reported_ = true;
  guard_.on_rejected();
}

}  // namespace kiln
