// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.hpp"

namespace kiln::test {

/// A clock that a test advances. It starts at the current time, so that it agrees with the times of new files.
class ManualClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override { return system_clock().wall() + moved(); }
  std::chrono::nanoseconds steady() const override { return system_clock().steady() + moved(); }
  void sleep(std::chrono::nanoseconds time) const override { moved_ += time.count(); }
  void advance(std::chrono::nanoseconds time) { moved_ += time.count(); }

 private:
  std::chrono::nanoseconds moved() const { return std::chrono::nanoseconds(moved_.load()); }
  mutable std::atomic<std::int64_t> moved_{0};
};

}  // namespace kiln::test
