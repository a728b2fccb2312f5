// SPDX-License-Identifier: Apache-2.0
// Behavior of a fleet when the compiling host is killed or stopped, with real processes and compiles, and with clocks
// that differ by two hours.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/get_process.hpp"
#include "support/processes/hang_timeout.hpp"
#include "support/processes/processes.hpp"
#include "support/servers/redis.hpp"
#include "trust/keys.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using SteadyTime = std::chrono::steady_clock::time_point;

double seconds_since(SteadyTime start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Hosts with separate caches that share a directory of artifacts and have leases in Redis or in a directory.
class LeaseFaults : public ::testing::TestWithParam<const char*> {
 protected:
  // Lease time in seconds, unless a campaign sets the default of hosts: longer than a busy machine stops a process.
  static std::string lease_text() {
    const char* wanted = std::getenv("KILN_TEST_LEASE");
    return wanted != nullptr ? wanted : "4";
  }
  const double lease_ = std::atof(lease_text().c_str());

  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed (tools/setup.sh)";
    for (const char* directory : {"objects", "leases"}) std::filesystem::create_directory(shared_.path(directory));
    if (GetParam() == std::string("redis")) server_.emplace();
    const SecretKey key = SecretKey::generate();
    ASSERT_TRUE(key.write(shared_.path("key")).has_value());
    write_text(shared_.path("trust.toml"),
               "[[key]]\npublic = \"" + key.public_key().text() + "\"\nnamespaces = [\"fleet/test\"]\n");
  }

  // `skew` is the error of the host's clock in faketime syntax; empty means none.
  GetProcess host(const std::string& name, const std::string& mode, const std::string& skew) {
    const std::string directory = shared_.path(name);
    for (const char* below : {"", "/home", "/run"}) std::filesystem::create_directory(directory + below);
    std::filesystem::permissions(directory + "/run", std::filesystem::perms::owner_all);
    GetProcess::Start start;
    start.arguments = {"closed", mode};
    start.environment = {{"KILN_CACHE_DIR", directory + "/cache"},
                         {"HOME", directory + "/home"},
                         {"XDG_RUNTIME_DIR", directory + "/run"},
                         {"KILN_REMOTE", shared_.path("objects")},
                         {"KILN_REMOTE_SIGNING_KEY", shared_.path("key")},
                         {"KILN_REMOTE_NAMESPACE", "fleet/test"},
                         {"KILN_TRUST", shared_.path("trust.toml")},
                         {"KILN_LEASE", server_ ? server_->url() : shared_.path("leases")},
                         {"KILN_LEASE_TTL", lease_text()},
                         {"KILN_REMOTE_BUDGET", "5000"}};  // a busy machine must not look like a failed server
    if (!skew.empty()) {
      // Not by the faketime program, which would be the process that the test kills. The steady clock is not changed.
      start.environment["LD_PRELOAD"] = "/usr/$LIB/faketime/libfaketimeMT.so.1";
      start.environment["FAKETIME"] = skew;
      start.environment["FAKETIME_DONT_FAKE_MONOTONIC"] = "1";
    }
    return GetProcess(start, directory + "/output");
  }

  static bool compiled(const GetProcess& host) { return host.count("event compiled") == 1; }
  // After the compile the host holds all its claims and stops.
  static bool eventually_compiled(const GetProcess& host) {
    return eventually([&] { return compiled(host); }, kHangTimeout);
  }

  TemporaryDirectory shared_;
  std::optional<RedisServer> server_;
};

TEST_P(LeaseFaults, KilledHolderIsReplacedWithinLeasePlusOneSecond) {
  GetProcess holder = host("holder", "held", "+1h");
  ASSERT_TRUE(eventually_compiled(holder)) << holder.output();
  GetProcess waiter = host("waiter", "", "-1h");
  ASSERT_TRUE(eventually([&] { return waiter.count("event miss") == 1; }, kHangTimeout)) << waiter.output();
  std::this_thread::sleep_for(std::chrono::duration<double>(lease_ * 1.3));
  EXPECT_FALSE(compiled(waiter)) << "a renewed lease was taken over\n" << waiter.output();
  const SteadyTime killed = std::chrono::steady_clock::now();
  holder.kill_now();
  ASSERT_TRUE(eventually([&] { return waiter.count("event lease_waited") == 1; }, kHangTimeout)) << waiter.output();
  const double succeeded = seconds_since(killed);
  ASSERT_EQ(waiter.exit_code(), 0) << waiter.output();
  std::printf("%s: killed, succeeded after %.2f s and done after %.2f s; lease %.0f s\n", GetParam(), succeeded,
              seconds_since(killed), lease_);
  EXPECT_TRUE(compiled(waiter)) << waiter.output();
  EXPECT_LE(succeeded, lease_ + 1) << waiter.output();
}

TEST_P(LeaseFaults, ResumedHolderCostsOneCompileAndNoWrongBytes) {
  GetProcess holder = host("holder", "stopped", "-1h");
  ASSERT_TRUE(eventually([&] { return process_line(holder.id()).state == 'T'; }, kHangTimeout)) << holder.output();
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

TEST_P(LeaseFaults, HostsWithSkewedClocksCompileOnce) {
  std::vector<GetProcess> hosts;
  for (const char* skew : {"+1h", "-1h", ""}) {
    hosts.push_back(host("host" + std::to_string(hosts.size()), "", skew));
  }
  int compiles = 0;
  for (GetProcess& one : hosts) EXPECT_EQ(one.exit_code(), 0) << one.output();
  const auto clock_of = [&](int i) { return std::atof(hosts[static_cast<std::size_t>(i)].word_after("at").c_str()); };
  EXPECT_NEAR(clock_of(0) - clock_of(1), 7200, 60) << "faketime has no effect (tools/setup.sh)";
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
