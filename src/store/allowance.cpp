#include "store/allowance.hpp"

#include <algorithm>
#include <utility>

namespace kiln {
namespace {

thread_local Allowance* in_force = nullptr;

}  // namespace

Allowance::Allowance(std::chrono::nanoseconds time, std::function<bool()> over)
    : left_(time), over_(std::move(over)), outer_(in_force) {
  in_force = this;
}

Allowance::~Allowance() { in_force = outer_; }

Allowance* Allowance::current() { return in_force; }

std::chrono::nanoseconds Allowance::at_most(std::chrono::nanoseconds most) {
  return in_force == nullptr ? most : std::min(most, in_force->left_);
}

bool Allowance::over() { return in_force != nullptr && in_force->over_ && in_force->over_(); }

bool Allowance::may_be_over() { return in_force != nullptr && in_force->over_ != nullptr; }

void Allowance::spend(std::chrono::nanoseconds time) {
  if (in_force != nullptr) in_force->left_ -= std::min(time, in_force->left_);
}

}  // namespace kiln
