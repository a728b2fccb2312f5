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

}  // namespace
}  // namespace kiln::test
