#include "warm/pool.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "support/eventually.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

TEST(Pool, WhereMemoryIsShortOneThreadDoesAllOfTheWorkAndThePoolEnds) {
  TemporaryDirectory machine;
  std::filesystem::create_directory(machine.path("proc"));
  spit(machine.path("proc/meminfo"), "MemAvailable: 1024 kB\n");
  std::mutex mutex;
  std::set<std::thread::id> workers;
  std::atomic<int> done = 0;
  Pool pool({.name = "pool", .machine = {machine.path()}}, [&] {
    const std::scoped_lock lock(mutex);
    workers.insert(std::this_thread::get_id());
    ++done;
  });
  for (int piece = 0; piece < 50; ++piece) ASSERT_TRUE(pool.add(1));
  EXPECT_TRUE(eventually([&] { return done == 50; }));
  pool.stop();
  EXPECT_EQ(workers.size(), 1u);
}

TEST(Pool, SeveralPiecesAtOnceWakeAsManyIdleThreads) {
  std::atomic<int> at_work = 0;
  std::atomic<int> together = 0;
  Pool pool({.name = "pool", .most_threads = 3}, [&] {
    ++at_work;
    together += eventually([&] { return at_work == 3; }) ? 1 : 0;  // none is done before all have begun
  });
  for (int round = 1; round <= 2; ++round) {  // the first starts them
    at_work = 0;
    ASSERT_TRUE(pool.add(3));
    EXPECT_TRUE(eventually([&] { return together == 3 * round; }));
  }
}

}  // namespace
}  // namespace kiln::test
