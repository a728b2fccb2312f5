#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"
#include "support/eventually.hpp"

namespace kiln::test {

/// A clock that stands still until a test moves it. It knows how many threads wait by it, so that a test can move time
/// when those whom it concerns have begun to wait.
class SteppedClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override { return steady(); }
  std::chrono::nanoseconds steady() const override {
    const MutexLock lock(mutex_);
    return now_;
  }
  void sleep(std::chrono::nanoseconds time) const override {
    const std::chrono::nanoseconds end = steady() + time;
    while (steady() < end) system_clock().sleep(kLook);
  }
  /// Waiters are not listed, so that none can be gone when it is to be woken: each looks at the time now and then.
  void wait(Condition& condition, Mutex& mutex, std::chrono::nanoseconds time) const override KILN_REQUIRES(mutex) {
    if (time <= std::chrono::nanoseconds(0)) return;
    count(1);
    (void)condition.wait_for(mutex, kLook);
    count(-1);
  }

  void advance(std::chrono::nanoseconds time) {
    const MutexLock lock(mutex_);
    now_ += time;
  }
  /// How many threads wait by this clock; one that looks at the time just now may be missing.
  int waiting() const {
    const MutexLock lock(mutex_);
    return waiting_;
  }
  /// Until that many do; false when that does not come about.
  bool waiting(int threads) const {
    return eventually([&] { return waiting() == threads; });
  }

 private:
  void count(int change) const {
    const MutexLock lock(mutex_);
    waiting_ += change;
  }

  static constexpr std::chrono::microseconds kLook{500};
  mutable Mutex mutex_;
  std::chrono::nanoseconds now_ KILN_GUARDED_BY(mutex_) = std::chrono::hours(1);
  mutable int waiting_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::test
