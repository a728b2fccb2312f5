// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {

/// A clock that stands still until a test advances it. It counts the threads that wait on it, so that a test can
/// advance the time after the relevant threads have started to wait. Thread-safe.
class SteppedClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override { return steady(); }
  std::chrono::nanoseconds steady() const override {
    const MutexLock lock(mutex_);
    return now_;
  }
  void sleep(std::chrono::nanoseconds time) const override {
    const std::chrono::nanoseconds end = steady() + time;
    while (steady() < end) system_clock().sleep(kPollInterval);
  }
  /// Waiters are not registered, so that a waiter cannot disappear before it is woken: each polls the time.
  void wait(Condition& condition, Mutex& mutex, std::chrono::nanoseconds time) const override KILN_REQUIRES(mutex) {
    if (time <= std::chrono::nanoseconds(0)) return;
    count(1);
    (void)condition.wait_for(mutex, kPollInterval);
    count(-1);
  }

  void advance(std::chrono::nanoseconds time) {
    const MutexLock lock(mutex_);
    now_ += time;
  }
  /// Returns the number of threads that wait on this clock; one that is polling the time may be missing.
  int waiting() const {
    const MutexLock lock(mutex_);
    return waiting_;
  }
  /// Waits until this many threads wait. Returns false on timeout.
  bool waiting(int threads) const {
    return eventually([&] { return waiting() == threads; });
  }

 private:
  void count(int change) const {
    const MutexLock lock(mutex_);
    waiting_ += change;
  }

  static constexpr std::chrono::microseconds kPollInterval{500};
  mutable Mutex mutex_;
  std::chrono::nanoseconds now_ KILN_GUARDED_BY(mutex_) = std::chrono::hours(1);
  mutable int waiting_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::test
