// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <functional>

#include <gtest/gtest.h>

#include <kiln/wait.hpp>

#include "base/clock.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

// Waits under a lock for a notification that never comes, up to a deadline. The interrupt check tests whether the lock
// is free when it is called.
void wait_in_vain(Mutex& mutex, const Deadline& deadline) {
  Condition never;
  const MutexLock lock(mutex);
  while (deadline.remaining() > 0ns) system_clock().wait_until(never, mutex, deadline);
}

TEST(Attention, EndsWaitAndRunsWithoutLock) {
  Mutex mutex;
  int asked = 0;
  const auto start = std::chrono::steady_clock::now();
  const std::function<bool()> keep_waiting = [&] {
    const MutexLock lock(mutex);
    return ++asked < 3;
  };
  InterruptCheck interrupt(&keep_waiting);
  wait_in_vain(mutex, Deadline(system_clock(), 60s, &interrupt));
  EXPECT_TRUE(interrupt.is_interrupted());
  EXPECT_EQ(asked, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  EXPECT_TRUE(interrupt.poll());
  EXPECT_EQ(asked, 3) << "it stays interrupted";
  EXPECT_EQ(Deadline(system_clock(), kForever, &interrupt).remaining(), 0ns);
}

TEST(Attention, WaitsFullTimeAndDoesNotAffectOtherDeadlines) {
  Mutex mutex;
  int asked = 0;
  const std::function<bool()> keep_waiting = [&] { return ++asked > 0; };
  InterruptCheck interrupt(&keep_waiting);
  const auto start = std::chrono::steady_clock::now();
  wait_in_vain(mutex, Deadline(system_clock(), 150ms, &interrupt));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 150ms);
  const int before = asked;
  EXPECT_GE(before, 1);
  wait_in_vain(mutex, 100ms);
  EXPECT_EQ(asked, before);
}

}  // namespace
}  // namespace kiln
