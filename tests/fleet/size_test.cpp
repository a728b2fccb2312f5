// What a host of a fleet costs itself: nothing before it asks, and no more the more others there are.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "fleet/rig.hpp"
#include "support/eventually.hpp"

namespace kiln::test {
namespace {
namespace fs = std::filesystem;

constexpr auto kSoon = std::chrono::seconds(120);

// Connections, servers and whatever else is a socket.
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
    if (const std::string why = FleetRig::unavailable(); !why.empty()) GTEST_SKIP() << why;
    rig_ = std::make_unique<FleetRig>(2);
  }
  // One that says that it is warm and stays.
  FleetProcess started(unsigned host, const std::vector<std::string>& arguments, const Variables& more = {}) {
    FleetProcess process = rig_->start(host, arguments, more);
    EXPECT_TRUE(eventually([&] { return !process.line("warm").empty(); }, kSoon)) << process.output();
    return process;
  }
  std::unique_ptr<FleetRig> rig_;
};

TEST_F(HostOfAFleet, OpensNoConnectionBeforeItAsks) {
  const FleetProcess idle = started(0, {"0", "small", "idle"});
  EXPECT_EQ(sockets_of(idle.id()), 0U);
  EXPECT_EQ(idle.number("warm", "threads"), 1) << "and no thread";

  FleetProcess compiling = started(0, {"2", "header", "stay"});
  EXPECT_EQ(compiling.number("warm", "compiled"), 2);
  EXPECT_GE(sockets_of(compiling.id()), 2U) << "this one asked: the test sees connections";
  compiling.let_go();
  EXPECT_EQ(compiling.exit_code(), 0);

  const FleetProcess served = started(0, {"2", "header", "stay"});
  EXPECT_GE(served.number("warm", "hit_disk"), 2);
  EXPECT_EQ(sockets_of(served.id()), 0U) << "its own disk had all";
  std::printf(
      "a process with a remote store and leases configured: %u sockets when it asked for nothing, %u when its "
      "disk had all; redis has %u connections\n",
      sockets_of(idle.id()), sockets_of(served.id()), rig_->redis_connections());
}

TEST_F(HostOfAFleet, TakesNoMoreMemoryAndThreadsTheMoreOthersThereAre) {
  const unsigned most = campaign_number("KILN_FLEET_OTHERS", 8);
  FleetProcess filler = rig_->start(1, {"4", "header"});
  ASSERT_EQ(filler.exit_code(), 0) << filler.output();
  std::vector<FleetProcess> others;
  double first_rss = 0;
  // Its own, two pools of one per core, the courier's.
  const unsigned most_threads = 2 + 2 * std::thread::hardware_concurrency();
  for (unsigned size : {1U, 8U, 64U, 256U}) {
    if (size > most) break;
    // Each with a cache of its own, so that it asks the servers, and stays connected.
    while (others.size() < size) {
      const std::string own = rig_->path("other" + std::to_string(others.size()));
      others.push_back(rig_->start(1, {"4", "header", "stay"}, {{"KILN_CACHE_DIR", own}}));
    }
    for (const FleetProcess& other : others) {
      ASSERT_TRUE(eventually([&] { return !other.line("warm").empty(); }, kSoon)) << other.output();
    }
    const std::string own = rig_->path("measured" + std::to_string(size));
    FleetProcess measured = started(0, {"4", "header", "stay"}, {{"KILN_CACHE_DIR", own}});
    EXPECT_EQ(measured.number("warm", "hit_remote"), 4) << measured.output();
    const double rss = measured.number("warm", "rss_kb");
    const double threads = measured.number("warm", "threads");
    std::printf(
        "one process beside %u others in the fleet: %.0f KB resident, %.0f threads, %u sockets; redis has %u "
        "connections\n",
        size, rss, threads, sockets_of(measured.id()), rig_->redis_connections());
    if (first_rss == 0) first_rss = rss;
    EXPECT_LE(rss, first_rss * 1.1);
    EXPECT_LE(threads, most_threads);
  }
}

}  // namespace
}  // namespace kiln::test
