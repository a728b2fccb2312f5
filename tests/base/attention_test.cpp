#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

// Waits under a lock for a notification that never comes, up to a deadline. The interrupt check tests whether the lock
// is free when it is called.
void wait_in_vain(Mutex& mutex, std::chrono::nanoseconds timeout) {
  Condition never;
  const Deadline deadline(system_clock(), timeout);
  const MutexLock lock(mutex);
  while (deadline.remaining() > 0ns) system_clock().wait(never, mutex, deadline.remaining());
}

TEST(Attention, EndsWaitAndRunsWithoutLock) {
  Mutex mutex;
  int asked = 0;
  const auto start = std::chrono::steady_clock::now();
  {
    const InterruptCheck attention([&] {
      const MutexLock lock(mutex);
      return ++asked < 3;
    });
    wait_in_vain(mutex, 60s);
    EXPECT_TRUE(InterruptCheck::is_interrupted());
  }
  EXPECT_EQ(asked, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  EXPECT_FALSE(InterruptCheck::is_interrupted());
}

TEST(Attention, WaitsFullTimeAndDoesNotAffectOtherThreads) {
  Mutex mutex;
  int asked = 0;
  const InterruptCheck attention([&] { return ++asked > 0; });
  const auto start = std::chrono::steady_clock::now();
  wait_in_vain(mutex, 150ms);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 150ms);
  const int before = asked;
  EXPECT_GE(before, 1);
  std::thread([&] { wait_in_vain(mutex, 100ms); }).join();
  EXPECT_EQ(asked, before);
}

}  // namespace
}  // namespace kiln
