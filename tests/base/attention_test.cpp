#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.hpp"

namespace kiln {
namespace {

using namespace std::chrono_literals;

// Waits for what never happens, as those do who wait under a lock with a deadline; whether the lock was free whenever
// the function of the attention was called is for that function to see.
void wait_in_vain(Mutex& mutex, std::chrono::nanoseconds limit) {
  Condition never;
  const Deadline deadline(system_clock(), limit);
  const MutexLock lock(mutex);
  while (deadline.left() > 0ns) system_clock().wait(never, mutex, deadline.left());
}

TEST(Attention, EndsAWaitWhenItSaysSoAndIsAskedUnderNoLock) {
  Mutex mutex;
  int asked = 0;
  const auto start = std::chrono::steady_clock::now();
  {
    const Attention attention([&] {
      const MutexLock lock(mutex);
      return ++asked < 3;
    });
    wait_in_vain(mutex, 60s);
    EXPECT_TRUE(Attention::is_over());
  }
  EXPECT_EQ(asked, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  EXPECT_FALSE(Attention::is_over());
}

TEST(Attention, LeavesAWaitItsWholeTimeAndOtherThreadsAlone) {
  Mutex mutex;
  int asked = 0;
  const Attention attention([&] { return ++asked > 0; });
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
