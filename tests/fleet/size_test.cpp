// SPDX-License-Identifier: Apache-2.0
// The cost of a fleet host: nothing before its first request, and independent of the number of other hosts.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "fleet/fleet_fixture.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {
namespace fs = std::filesystem;

constexpr auto kSoon = std::chrono::seconds(120);

// Counts all sockets of a process.
unsigned sockets_of(pid_t process) {
  unsigned found = 0;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", gone)) {
    const std::string target = fs::read_symlink(entry.path(), gone).string();
    found += target.starts_with("socket:") ? 1 : 0;
  }
  return found;
}

class HostOfAFleet : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = FleetFixture::unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    fixture_ = std::make_unique<FleetFixture>(2);
  }
  // Starts a process that reports that it is ready and then stays.
  FleetProcess started(unsigned host, const std::vector<std::string>& arguments, const Variables& more = {}) {
    FleetProcess process = fixture_->start(host, arguments, more);
    EXPECT_TRUE(eventually([&] { return !process.line("warm").empty(); }, kSoon)) << process.output();
    return process;
  }
  std::unique_ptr<FleetFixture> fixture_;
};

TEST_F(HostOfAFleet, OpensNoConnectionBeforeFirstRequest) {
  const FleetProcess idle = started(0, {"0", "small", "idle"});
  EXPECT_EQ(sockets_of(idle.id()), 0U);
  EXPECT_EQ(idle.number("warm", "threads"), 1) << "and no thread";

  FleetProcess compiling = started(0, {"2", "header", "stay"});
  EXPECT_EQ(compiling.number("warm", "compiled"), 2);
  EXPECT_GE(sockets_of(compiling.id()), 2U) << "this process sent requests: the test can see connections";
  compiling.let_go();
  EXPECT_EQ(compiling.exit_code(), 0);

  const FleetProcess served = started(0, {"2", "header", "stay"});
  EXPECT_GE(served.number("warm", "hit_disk"), 2);
  EXPECT_EQ(sockets_of(served.id()), 0U) << "everything was in the local cache";
  std::printf(
      "a process with a remote store and leases configured: %u sockets without requests, %u when its "
      "local cache had everything; redis has %u connections\n",
      sockets_of(idle.id()), sockets_of(served.id()), fixture_->redis_connections());
}

TEST_F(HostOfAFleet, MemoryAndThreadsDoNotGrowWithFleetSize) {
  const unsigned maximum = campaign_number("KILN_FLEET_OTHERS", 8);
  FleetProcess filler = fixture_->start(1, {"4", "header"});
  ASSERT_EQ(filler.exit_code(), 0) << filler.output();
  std::vector<FleetProcess> others;
  double first_rss = 0;
  // The main thread, two pools with one thread per core, and the background queue.
  const unsigned max_threads = 2 + 2 * std::thread::hardware_concurrency();
  for (unsigned size : {1U, 8U, 64U, 256U}) {
    if (size > maximum) break;
    // Each with its own cache, so that it uses the servers, and stays connected.
    while (others.size() < size) {
      const std::string own = fixture_->path("other" + std::to_string(others.size()));
      others.push_back(fixture_->start(1, {"4", "header", "stay"}, {{"KILN_CACHE_DIR", own}}));
    }
    for (const FleetProcess& other : others) {
      ASSERT_TRUE(eventually([&] { return !other.line("warm").empty(); }, kSoon)) << other.output();
    }
    const std::string own = fixture_->path("measured" + std::to_string(size));
    FleetProcess measured = started(0, {"4", "header", "stay"}, {{"KILN_CACHE_DIR", own}});
    EXPECT_EQ(measured.number("warm", "hit_remote"), 4) << measured.output();
    const double rss = measured.number("warm", "rss_kb");
    const double threads = measured.number("warm", "threads");
    std::printf(
        "one process and %u others in the fleet: %.0f KB resident, %.0f threads, %u sockets; redis has %u "
        "connections\n",
        size, rss, threads, sockets_of(measured.id()), fixture_->redis_connections());
    if (first_rss == 0) first_rss = rss;
    EXPECT_LE(rss, first_rss * 1.1);
    EXPECT_LE(threads, max_threads);
  }
}

}  // namespace
}  // namespace kiln::test
