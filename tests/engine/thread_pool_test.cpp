// SPDX-License-Identifier: Apache-2.0
#include "engine/thread_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>

#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

TEST(Pool, OneThreadDoesAllWorkUnderMemoryPressure) {
  TemporaryDirectory machine;
  std::filesystem::create_directory(machine.path("proc"));
  write_text(machine.path("proc/meminfo"), "MemAvailable: 1024 kB\n");
  std::mutex mutex;
  std::set<std::thread::id> workers;
  std::atomic<int> done = 0;
  ThreadPool pool({.name = "pool", .machine = {machine.path()}}, [&] {
    const std::scoped_lock lock(mutex);
    workers.insert(std::this_thread::get_id());
    ++done;
  });
  for (int piece = 0; piece < 50; ++piece) ASSERT_TRUE(pool.submit(1));
  EXPECT_TRUE(eventually([&] { return done == 50; }));
  pool.stop();
  EXPECT_EQ(workers.size(), 1u);
}

TEST(Pool, ThreadsThatExitUnderMemoryPressureAreJoined) {
  TemporaryDirectory machine;
  std::filesystem::create_directory(machine.path("proc"));
  write_text(machine.path("proc/meminfo"), "MemAvailable: 1024 kB\n");
  ManualClock clock;
  std::atomic<bool> begun = false;
  std::atomic<bool> may_end = false;
  std::size_t maximum = 0;
  {
    ThreadPool pool({.name = "pool", .machine = {machine.path()}, .clock = &clock}, [&] {
      begun = true;
      (void)eventually([&] { return may_end.load(); });
    });
    ASSERT_TRUE(pool.submit(1));
    ASSERT_TRUE(eventually([&] { return begun.load(); }));  // the only thread is busy
    for (int tries = 0; tries < 50; ++tries) {
      ASSERT_TRUE(pool.submit(1));
      system_clock().sleep(std::chrono::milliseconds(2));  // lets the next thread check the memory and exit
      clock.advance(std::chrono::seconds(2));
      maximum = std::max(maximum, pool.unjoined());
    }
    may_end = true;
  }
  std::printf("figure: 50 threads tried under memory pressure: at most %zu not joined\n", maximum);
  EXPECT_LE(maximum, 3U) << "the busy thread, one that is exiting, and the last that exited";
}

/// A pool with work items that wait for another process until the test releases them, or do nothing.
class PoolThatWaits : public testing::Test {
 protected:
  void work() {
    const bool waits = to_wait_-- > 0;
    const int now = ++at_work_;
    if (!waits) {
      maximum_ = std::max<int>(maximum_, now);
      ++done_;
      system_clock().sleep(std::chrono::milliseconds(1));
    } else {
      --at_work_;
      const WaitObserver::Scope scope(*pool_);
      ++waiting_;
      EXPECT_TRUE(eventually([&] { return go_on_.load(); }));
      ++at_work_;
    }
    --at_work_;
  }
  void expect_others_done_while(int waits, ThreadPool::Options options) {
    to_wait_ = waits;
    pool_ = std::make_unique<ThreadPool>(std::move(options), [this] { work(); });
    ASSERT_TRUE(pool_->submit(static_cast<std::size_t>(waits)));
    ASSERT_TRUE(eventually([&] { return waiting_ == waits; }));
    (void)pool_->submit(5);
    EXPECT_TRUE(eventually([&] { return done_ == 5; }, std::chrono::seconds(20)));
    EXPECT_EQ(maximum_, 1) << "one thread runs one item at a time";
    go_on_ = true;
    (void)pool_->submit(20);
    EXPECT_TRUE(eventually([&] { return done_ == 25; }));
    EXPECT_TRUE(eventually([&] { return pool_->unjoined() <= 2; })) << "the substitutes exit";
    pool_->stop();
  }

  std::atomic<int> to_wait_ = 0;
  std::atomic<int> waiting_ = 0;
  std::atomic<int> at_work_ = 0;
  std::atomic<int> maximum_ = 0;
  std::atomic<int> done_ = 0;
  std::atomic<bool> go_on_ = false;
  std::unique_ptr<ThreadPool> pool_;
};

TEST_F(PoolThatWaits, WaitingThreadDoesNotCount) { expect_others_done_while(1, {.name = "pool", .max_threads = 1}); }

TEST_F(PoolThatWaits, ManyWaitingThreadsDoNotCount) {
  expect_others_done_while(40, {.name = "pool", .max_threads = 1});
}

TEST_F(PoolThatWaits, WaitingThreadDoesNotCountUnderMemoryPressure) {
  TemporaryDirectory machine;
  std::filesystem::create_directory(machine.path("proc"));
  write_text(machine.path("proc/meminfo"), "MemAvailable: 1024 kB\n");
  expect_others_done_while(1, {.name = "pool", .machine = {machine.path()}});
}

TEST_F(PoolThatWaits, WaitingThreadsBeyond64Count) {
  to_wait_ = 70;
  pool_ = std::make_unique<ThreadPool>(ThreadPool::Options{.name = "pool", .max_threads = 1}, [this] { work(); });
  (void)pool_->submit(70);
  ASSERT_TRUE(eventually([&] { return waiting_ == 65; })) << "one regular thread and 64 substitutes";
  EXPECT_FALSE(pool_->submit(1)) << "add reports that no thread is available";
  EXPECT_EQ(pool_->unjoined(), 65U);
  go_on_ = true;
  EXPECT_TRUE(eventually([&] { return done_ == 1; }));
}

TEST(Pool, SeveralItemsWakeAsManyIdleThreads) {
  std::atomic<int> at_work = 0;
  std::atomic<int> together = 0;
  ThreadPool pool({.name = "pool", .max_threads = 3}, [&] {
    ++at_work;
    together += eventually([&] { return at_work == 3; }) ? 1 : 0;  // none finishes before all have started
  });
  for (int round = 1; round <= 2; ++round) {  // the first round starts the threads
    at_work = 0;
    ASSERT_TRUE(pool.submit(3));
    EXPECT_TRUE(eventually([&] { return together == 3 * round; }));
  }
}

}  // namespace
}  // namespace kiln::test
