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

/// How late the machine itself is, for one who only sleeps, on each of its processors. What is promised in milliseconds
/// is promised on a machine that runs whoever is due; a test that measures such a promise on one that is not ours alone
/// adds this to the limit.
class Pacer {
 public:
  using Time = std::chrono::nanoseconds;

  Pacer() {
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof(ours), &ours) != 0) return;
    for (int processor = 0; processor < CPU_SETSIZE && sleepers_.size() < kMostSleepers; ++processor) {
      if (CPU_ISSET(processor, &ours)) sleepers_.emplace_back(processor);
    }
  }

  /// At worst, since it was made.
  Time late() const {
    Time most{0};
    for (const Sleeper& sleeper : sleepers_) most = std::max(most, sleeper.lateness().worst);
    return most;
  }

  /// In all, since it was made: something that takes several steps is late in each of them, on whichever processor it
  /// is.
  Time lost() const {
    Time all{0};
    for (const Sleeper& sleeper : sleepers_) all += sleeper.lateness().all;
    return all;
  }

 private:
  // A machine with more processors has one to spare for a test, and should not be kept busy with sleeping.
  static constexpr std::size_t kMostSleepers = 8;

  struct Lateness {
    Time worst{0};
    Time all{0};
  };

  class Sleeper {
   public:
    explicit Sleeper(int processor)
        : thread_([this, processor](const std::stop_token& over) { nap(processor, over); }) {}

    Lateness lateness() const {
      const MutexLock lock(mutex_);
      return with(lateness_, system_clock().steady());  // it may be late at this moment
    }

   private:
    static constexpr Time kNap = std::chrono::microseconds(200);
    // A nap is never exact; this much is no fault of the machine's.
    static constexpr Time kUsual = std::chrono::milliseconds(1);

    Lateness with(Lateness until_then, Time now) const KILN_REQUIRES(mutex_) {
      const Time late = now - asleep_since_ - kNap;
      if (late < kUsual) return until_then;
      return {std::max(until_then.worst, late), until_then.all + late};
    }

    void nap(int processor, const std::stop_token& over) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processor, &one);
      (void)sched_setaffinity(0, sizeof(one), &one);
      while (!over.stop_requested()) {
        system_clock().sleep(kNap);
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
