// What becomes of a fleet when the host that compiles is killed or stopped, with real processes that really compile,
// and whose clocks are two hours apart.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "support/eventually.hpp"
#include "support/get_process.hpp"
#include "support/patience.hpp"
#include "support/processes.hpp"
#include "support/redis.hpp"
#include "support/temporary_directory.hpp"
#include "trust/keys.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using SteadyTime = std::chrono::steady_clock::time_point;

double seconds_since(SteadyTime start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Hosts with a cache each, that share a folder of artifacts, and leases in Redis or in a folder.
class LeaseFaults : public ::testing::TestWithParam<const char*> {
 protected:
  // Seconds. The shortest that can be set, unless a campaign wants the one that hosts have.
  static std::string lease_text() {
    const char* wanted = std::getenv("KILN_TEST_LEASE");
    return wanted != nullptr ? wanted : "1";
  }
  const double lease_ = std::atof(lease_text().c_str());

  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed (tools/setup.sh)";
    for (const char* folder : {"depot", "leases"}) std::filesystem::create_directory(shared_.path(folder));
    if (GetParam() == std::string("redis")) server_.emplace();
    const SecretKey key = SecretKey::generate();
    ASSERT_TRUE(key.write(shared_.path("key")).ok());
    spit(shared_.path("trust.toml"),
         "[[key]]\npublic = \"" + key.public_key().text() + "\"\nnamespaces = [\"fleet/test\"]\n");
  }

  // `skew`: how wrong the host's clock is, as faketime says it; empty: not at all.
  GetProcess host(const std::string& name, const std::string& manner, const std::string& skew) {
    const std::string folder = shared_.path(name);
    for (const char* below : {"", "/home", "/run"}) std::filesystem::create_directory(folder + below);
    std::filesystem::permissions(folder + "/run", std::filesystem::perms::owner_all);
    GetProcess::Start start;
    start.arguments = {"closed", manner};
    start.environment = {{"KILN_CACHE_DIR", folder + "/cache"},
                         {"HOME", folder + "/home"},
                         {"XDG_RUNTIME_DIR", folder + "/run"},
                         {"KILN_REMOTE", shared_.path("depot")},
                         {"KILN_REMOTE_SIGN", shared_.path("key")},
                         {"KILN_REMOTE_NAMESPACE", "fleet/test"},
                         {"KILN_TRUST", shared_.path("trust.toml")},
                         {"KILN_LEASE", server_ ? server_->url() : shared_.path("leases")},
                         {"KILN_LEASE_TIME", lease_text()},
                         {"KILN_REMOTE_BUDGET", "5000"}};  // a crowded machine must not look like a lost server
    if (!skew.empty()) {
      // Not by the program of that name: it would be what the test kills. No host's steady clock jumps.
      start.environment["LD_PRELOAD"] = "/usr/$LIB/faketime/libfaketimeMT.so.1";
      start.environment["FAKETIME"] = skew;
      start.environment["FAKETIME_DONT_FAKE_MONOTONIC"] = "1";
    }
    return GetProcess(start, folder + "/output");
  }

  static bool compiled(const GetProcess& host) { return host.count("event compiled") == 1; }
  // Once it has compiled it has all its claims, and goes no further.
  static bool eventually_compiled(const GetProcess& host) {
    return eventually([&] { return compiled(host); }, kPatience);
  }

  TemporaryDirectory shared_;
  std::optional<RedisServer> server_;
};

TEST_P(LeaseFaults, AKilledHolderIsSucceededWithinOneLeaseAndASecondWhateverTheClocksSay) {
  GetProcess holder = host("holder", "held", "+1h");
  ASSERT_TRUE(eventually_compiled(holder)) << holder.output();
  GetProcess waiter = host("waiter", "", "-1h");
  ASSERT_TRUE(eventually([&] { return waiter.count("event miss") == 1; }, kPatience)) << waiter.output();
  std::this_thread::sleep_for(std::chrono::duration<double>(lease_ * 1.3));
  EXPECT_FALSE(compiled(waiter)) << "a lease that is renewed was taken over\n" << waiter.output();
  const SteadyTime killed = std::chrono::steady_clock::now();
  holder.kill_now();
  ASSERT_TRUE(eventually([&] { return waiter.count("event lease_waited") == 1; }, kPatience)) << waiter.output();
  const double succeeded = seconds_since(killed);
  ASSERT_EQ(waiter.exit_code(), 0) << waiter.output();
  std::printf("%s: killed, succeeded after %.2f s and done after %.2f s; lease %.0f s\n", GetParam(), succeeded,
              seconds_since(killed), lease_);
  EXPECT_TRUE(compiled(waiter)) << waiter.output();
  EXPECT_LE(succeeded, lease_ + 1) << waiter.output();
}

TEST_P(LeaseFaults, AHolderStoppedPastItsLeaseAndResumedCostsOneMoreCompileAndNoWrongBytes) {
  GetProcess holder = host("holder", "stopped", "-1h");
  ASSERT_TRUE(eventually([&] { return process_line(holder.id()).state == 'T'; }, kPatience)) << holder.output();
  const SteadyTime stopped = std::chrono::steady_clock::now();
  GetProcess waiter = host("waiter", "", "+1h");
  ASSERT_EQ(waiter.exit_code(), 0) << waiter.output();
  const double all = seconds_since(stopped);
  kill(holder.id(), SIGCONT);
  ASSERT_EQ(holder.exit_code(), 0) << holder.output();
  GetProcess late = host("late", "", "");
  ASSERT_EQ(late.exit_code(), 0) << late.output();
  const int compiles = holder.count("event compiled") + waiter.count("event compiled") + late.count("event compiled");
  std::printf("%s: stopped, %d compiles in the fleet, the waiter done after %.2f s; lease %.0f s\n", GetParam(),
              compiles, all, lease_);
  EXPECT_LE(compiles, 2) << holder.output() << waiter.output() << late.output();
  EXPECT_EQ(late.count("event compiled"), 0) << late.output();
  EXPECT_FALSE(holder.word_after("artifact").empty());
  EXPECT_EQ(holder.word_after("artifact"), waiter.word_after("artifact"));
  EXPECT_EQ(holder.word_after("artifact"), late.word_after("artifact"));
}

TEST_P(LeaseFaults, HostsWhoseClocksAreTwoHoursApartCompileOnce) {
  std::vector<GetProcess> hosts;
  for (const char* skew : {"+1h", "-1h", ""}) {
    hosts.push_back(host("host" + std::to_string(hosts.size()), "", skew));
  }
  int compiles = 0;
  for (GetProcess& one : hosts) EXPECT_EQ(one.exit_code(), 0) << one.output();
  const auto clock_of = [&](int i) { return std::atof(hosts[static_cast<std::size_t>(i)].word_after("at").c_str()); };
  EXPECT_NEAR(clock_of(0) - clock_of(1), 7200, 60) << "faketime is not in force (tools/setup.sh)";
  for (GetProcess& one : hosts) {
    EXPECT_EQ(one.word_after("artifact"), hosts.front().word_after("artifact"));
    compiles += one.count("event compiled");
  }
  EXPECT_EQ(compiles, 1);
}

INSTANTIATE_TEST_SUITE_P(In, LeaseFaults, ::testing::Values("redis", "folder"),
                         [](const auto& which) { return std::string(which.param); });

}  // namespace
}  // namespace kiln::test
