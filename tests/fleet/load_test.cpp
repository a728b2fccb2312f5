// SPDX-License-Identifier: Apache-2.0
// Thousands of hosts, each with its own connection, get the same keys with the code of sessions.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "fleet/fleet_fixture.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {
namespace {

TEST(Load, CompilesEachKeyOnceForAllConnections) {
  if (!RedisServer::available() || !Nginx::available()) GTEST_SKIP() << "no redis-server or no nginx (tools/setup.sh)";
  const unsigned connections = campaign_number("KILN_FLEET_CONNECTIONS", 200);
  const unsigned programs = campaign_number("KILN_FLEET_PROGRAMS", 2);
  const unsigned keys = campaign_number("KILN_FLEET_KEYS", 3);
  const unsigned compile_ms = campaign_number("KILN_FLEET_COMPILE_MS", 100);
  const TemporaryDirectory directory;
  ASSERT_TRUE(SecretKey::generate().write(directory.path("load.key")).has_value());
  RedisServer::Options redis_options;
  redis_options.lines = {"maxclients " + std::to_string(connections + 500), "tcp-backlog 4096"};
  const RedisServer redis(redis_options);
  Nginx::Options nginx_options;
  nginx_options.connections = connections + 1000;
  const Nginx nginx(nginx_options);

  std::vector<FleetProcess> all;
  for (unsigned i = 0; i < programs; ++i) {
    all.emplace_back(std::vector<std::string>{KILN_FLEET_LOAD, std::to_string(connections / programs),
                                              std::to_string(keys), std::to_string(compile_ms), redis.url(),
                                              nginx.url(), directory.path(), std::to_string(i)},
                     Variables{}, directory.path("output" + std::to_string(i)), directory.path());
  }
  for (const FleetProcess& process : all) {
    ASSERT_TRUE(eventually([&] { return !process.line("ready").empty(); }, kHangTimeout)) << process.output();
  }
  const std::string clients = redis.ask({"info", "clients"});
  const auto at = clients.find("connected_clients:");
  ASSERT_NE(at, std::string::npos) << clients;
  const unsigned open = static_cast<unsigned>(std::atoi(clients.c_str() + at + 18)) - 1;
  EXPECT_EQ(open, connections);
  const std::int64_t start = monotonic_now();
  for (FleetProcess& process : all) process.let_go();
  for (FleetProcess& process : all) {
    EXPECT_EQ(process.exit_code(std::chrono::seconds(600)), 0) << process.output();
    EXPECT_EQ(process.value("done", "failed"), "0") << process.output();
  }
  const double seconds = static_cast<double>(monotonic_now() - start) / 1e9;
  EXPECT_EQ(total(all, "done", "compiles"), keys) << nginx.error_log().substr(0, 2000);
  std::printf(
      "%u connections open at once, %u keys, a compile is a sleep of %u ms: compiles=%u hits=%u lease_waits=%u "
      "hedges=%u circuits opened=%u; %.1f s, redis %llu SET\n",
      open, keys, compile_ms, total(all, "done", "compiles"), total(all, "done", "hits"),
      total(all, "done", "lease_waited"), total(all, "done", "hedged"), total(all, "done", "remote_unavailable"),
      seconds, static_cast<unsigned long long>(redis.calls("set")));
  std::fputs(problems(all).c_str(), stdout);
}

}  // namespace
}  // namespace kiln::test
