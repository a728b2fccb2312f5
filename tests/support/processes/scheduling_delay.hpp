// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <list>
#include <thread>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace kiln::test {

/// Measures the scheduling delay of the machine with a sleeping thread per CPU. Documented times in milliseconds assume
/// a machine that schedules ready threads immediately. A test that measures such a time on a shared machine adds this
/// delay to the limit.
class SchedulingDelayMonitor {
 public:
  using Time = std::chrono::nanoseconds;

  SchedulingDelayMonitor() {
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof(ours), &ours) != 0) return;
    for (int processor = 0; processor < CPU_SETSIZE && sleepers_.size() < kMaxSleepers; ++processor) {
      if (CPU_ISSET(processor, &ours)) sleepers_.emplace_back(processor);
    }
  }

  /// Returns the largest delay since construction.
  Time late() const {
    Time maximum{0};
    for (const Sleeper& sleeper : sleepers_) maximum = std::max(maximum, sleeper.lateness().worst);
    return maximum;
  }

  /// Returns the total delay since construction: an operation with several steps may be late in each of them, on any
  /// CPU.
  Time lost() const {
    Time all{0};
    for (const Sleeper& sleeper : sleepers_) all += sleeper.lateness().all;
    return all;
  }

 private:
  // A machine with more CPUs has one free for a test and should not be kept busy with sleeping.
  static constexpr std::size_t kMaxSleepers = 8;

  struct Lateness {
    Time worst{0};
    Time all{0};
  };

  class Sleeper {
   public:
    explicit Sleeper(int processor)
        : thread_([this, processor](const std::stop_token& over) { interval(processor, over); }) {}

    Lateness lateness() const {
      const MutexLock lock(mutex_);
      return with(lateness_, system_clock().steady());  // it may be late now
    }

   private:
    static constexpr Time kPollInterval = std::chrono::microseconds(200);
    // A sleep is never exact; this much is normal.
    static constexpr Time kUsual = std::chrono::milliseconds(1);

    Lateness with(Lateness until_then, Time now) const KILN_REQUIRES(mutex_) {
      const Time late = now - asleep_since_ - kPollInterval;
      if (late < kUsual) return until_then;
      return {std::max(until_then.worst, late), until_then.all + late};
    }

    void interval(int processor, const std::stop_token& over) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processor, &one);
      (void)sched_setaffinity(0, sizeof(one), &one);
      while (!over.stop_requested()) {
        system_clock().sleep(kPollInterval);
        const MutexLock lock(mutex_);
        const Time now = system_clock().steady();
        lateness_ = with(lateness_, now);
        asleep_since_ = now;
      }
    }

    mutable Mutex mutex_;
    Lateness lateness_ KILN_GUARDED_BY(mutex_);
    Time asleep_since_ KILN_GUARDED_BY(mutex_) = system_clock().steady();
    std::jthread thread_;
  };

  std::list<Sleeper> sleepers_;
};

}  // namespace kiln::test
