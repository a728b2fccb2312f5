#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.hpp"

namespace kiln::test {

/// A clock that moves only when it is told to; sleeping moves it and returns at once. It begins at the present, so that
/// it agrees with the times of new files.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::chrono::nanoseconds start = system_clock().wall()) : now_(start.count()) {}
  std::chrono::nanoseconds wall() const override { return std::chrono::nanoseconds(now_); }
  std::chrono::nanoseconds steady() const override { return std::chrono::nanoseconds(now_); }
  void sleep(std::chrono::nanoseconds time) const override {
    now_ += time.count();
    ++sleeps_;
  }

  void advance(std::chrono::nanoseconds time) { now_ += time.count(); }
  void set(std::chrono::nanoseconds time) { now_ = time.count(); }
  int sleeps() const { return sleeps_; }

 private:
  mutable std::atomic<std::chrono::nanoseconds::rep> now_;
  mutable std::atomic<int> sleeps_{0};
};

}  // namespace kiln::test
