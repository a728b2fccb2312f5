#include "cache/server_time_budget.hpp"

#include <algorithm>
#include <utility>

namespace kiln {
namespace {

thread_local ServerTimeBudget* in_force = nullptr;

}  // namespace

ServerTimeBudget::ServerTimeBudget(std::chrono::nanoseconds time, std::function<bool()> over)
    : remaining_(time), over_(std::move(over)), outer_(in_force) {
  in_force = this;
}

ServerTimeBudget::~ServerTimeBudget() { in_force = outer_; }

ServerTimeBudget* ServerTimeBudget::current() { return in_force; }

std::chrono::nanoseconds ServerTimeBudget::capped(std::chrono::nanoseconds maximum) {
  return in_force == nullptr ? maximum : std::min(maximum, in_force->remaining_);
}

bool ServerTimeBudget::is_cancelled() { return in_force != nullptr && in_force->over_ && in_force->over_(); }

bool ServerTimeBudget::is_cancellable() { return in_force != nullptr && in_force->over_ != nullptr; }

void ServerTimeBudget::charge(std::chrono::nanoseconds time) {
  if (in_force != nullptr) in_force->remaining_ -= std::min(time, in_force->remaining_);
}

}  // namespace kiln
