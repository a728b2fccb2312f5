// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "bench/fleet/event_queue.hpp"
#include "bench/fleet/options.hpp"
#include "bench/fleet/report.hpp"
#include "bench/fleet/server_state.hpp"
#include "bench/fleet/service_queue.hpp"
#include "bench/fleet/simulation.hpp"

namespace kiln::fleet {
namespace {

using namespace std::chrono_literals;

Event planned(Time at, std::uint32_t host) {
  Event event;
  event.at = at;
  event.host = host;
  return event;
}

Scenario small(std::uint32_t hosts, std::uint32_t keys) {
  Scenario scenario;
  scenario.hosts = hosts;
  scenario.keys = keys;
  return scenario;
}

std::string text_of(const Scenario& scenario) { return json_of(scenario, simulate(scenario), {}); }

TEST(EventQueue, ReturnsEarliestFirstAndTiesInFifoOrder) {
  EventQueue queue;
  queue.plan(planned(3s, 1));
  queue.plan(planned(1s, 2));
  queue.plan(planned(3s, 3));
  queue.plan(planned(2s, 4));
  std::vector<std::uint32_t> order;
  while (!queue.empty()) order.push_back(queue.next().host);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{2, 4, 1, 3}));
}

TEST(ServiceQueue, WorkWaitsForAFreeWorker) {
  ServiceQueue station("server", 2);
  EXPECT_EQ(station.serve(0s, 10s), 10s);
  EXPECT_EQ(station.serve(0s, 4s), 4s);
  EXPECT_EQ(station.serve(1s, 1s), 5s);  // after the shorter one
  EXPECT_EQ(station.longest_wait(), 3s);
  EXPECT_EQ(station.serve(20s, 1s), 21s);
}

TEST(ServiceQueue, ReportsFirstLongWaitAndDemand) {
  ServiceQueue station("server", 1);
  (void)station.serve(0s, 1ms);
  EXPECT_LT(station.first_long(), 0s);
  (void)station.serve(3s, 1500ms);
  (void)station.serve(3100ms, 500ms);
  EXPECT_EQ(station.first_long(), Time(3100ms));
  EXPECT_DOUBLE_EQ(station.busiest(), 2);
}

TEST(ServerState, LeaseHasOneOwnerUntilExpiryOrRelease) {
  ServerState bucket(1);
  EXPECT_TRUE(bucket.take(0, 1, 5s, 0s));
  EXPECT_FALSE(bucket.take(0, 2, 5s, 4s));
  EXPECT_TRUE(bucket.renew(0, 1, 5s, 4s));
  EXPECT_EQ(bucket.remaining(0, 6s), Time(3s));
  bucket.release(0, 2);  // not the owner
  EXPECT_FALSE(bucket.take(0, 2, 5s, 8s));
  EXPECT_TRUE(bucket.take(0, 2, 5s, 9s));
  EXPECT_TRUE(bucket.was_taken_over(0));
  EXPECT_FALSE(bucket.renew(0, 1, 5s, 9s));
  bucket.release(0, 2);
  EXPECT_EQ(bucket.remaining(0, 9s), Time(0));
}

TEST(ServerState, HedgesAreLimitedPerWindow) {
  ServerState bucket(1);
  EXPECT_TRUE(bucket.draw(0, 1, 30s, 0s));
  EXPECT_FALSE(bucket.draw(0, 1, 30s, 29s));
  EXPECT_TRUE(bucket.draw(0, 1, 30s, 30s));
}

TEST(FleetSimulation, SameSeedGivesSameOutcome) {
  Scenario scenario = small(300, 30);
  const std::string once = text_of(scenario);
  EXPECT_EQ(once, text_of(scenario));
  scenario.seed = 2;
  EXPECT_NE(once, text_of(scenario));
}

TEST(FleetSimulation, ThousandHostsCompileEachKernelOnceDespiteStalledHolder) {
  const Outcome outcome = simulate(small(1000, 100));
  EXPECT_LE(outcome.compiles_per_key(), 1.01);
  EXPECT_GE(outcome.compiles_per_key(), 1);
  EXPECT_EQ(outcome.stalled, 1U);
  EXPECT_EQ(outcome.hits + outcome.compiles.all(), 100'000U);
}

TEST(FleetSimulation, HostsWithoutServersCompileLocallyWithLittleDelay) {
  Scenario scenario = small(50, 16);
  scenario.name = "outage_herd";
  ASSERT_TRUE(prepare(scenario));
  scenario.outage.until = from_seconds(1e6);
  const Outcome outcome = simulate(scenario);
  EXPECT_EQ(outcome.hits, 0U);
  EXPECT_EQ(outcome.compiles.all(), 50U * 16);
  const double alone = baselines(scenario).front().p99_host_s;
  EXPECT_LT(outcome.p99_host_s, alone + 1);
}

TEST(FleetSimulation, BottleneckIsReported) {
  Scenario scenario = small(200, 20);
  scenario.window = 5;
  scenario.costs.http_bytes_per_s = 5e6;
  const Outcome outcome = simulate(scenario);
  EXPECT_NE(outcome.first_bottleneck.find("http wire, from"), std::string::npos) << outcome.first_bottleneck;
  EXPECT_GT(outcome.slowdowns, 0U);
  EXPECT_GT(outcome.compiles.skipped, 0U);
  EXPECT_EQ(outcome.hits + outcome.compiles.all(), 200U * 20);
}

TEST(FleetSimulation, SmallContentNeedsNoRequestOfItsOwn) {
  Scenario scenario = small(50, 16);
  scenario.name = "warmed_rollout";
  EXPECT_EQ(simulate(scenario).servers.http, 50U * 16 * 2);
  scenario.max_inlined_bytes = 0;
  EXPECT_EQ(simulate(scenario).servers.http, 50U * 16 * 3);
}

TEST(FleetSimulation, OverloadedServersMakeTheFleetNoLater) {
  Scenario scenario = small(1000, 50);
  scenario.costs.http_read *= 100;
  ASSERT_TRUE(prepare(scenario));
  const Outcome outcome = simulate(scenario);
  EXPECT_GT(outcome.compiles_per_key(), 100);  // it is an overload
  EXPECT_GT(outcome.hits, 0U);
  const Baseline alone = baselines(scenario).front();
  EXPECT_LE(outcome.p99_warm_s, alone.p99_warm_s);
  EXPECT_LE(outcome.p99_host_s, alone.p99_host_s + seconds(scenario.policy.initial_wait));
  scenario.policy.initial_wait = scenario.policy.max_wait = from_seconds(1000);
  EXPECT_GT(simulate(scenario).p99_host_s, outcome.p99_host_s + 3);  // the account bounds the delay
}

TEST(FleetSimulation, HostsNoticeTheEndOfAnOutageBeforeTheyCompile) {
  Scenario scenario = small(1000, 100);
  scenario.name = "outage_herd";
  EXPECT_LE(simulate(scenario).compiles_per_key(), 1.5);
  scenario.policy.early_probe_interval = from_seconds(1e6);
  EXPECT_GT(simulate(scenario).compiles_per_key(), 3);
}

TEST(FleetSimulation, InvalidOptionsAreReported) {
  Scenario scenario;
  bool json = false;
  EXPECT_EQ(read_options({"--hosts", "7", "--scenario", "rolling_restart", "--json"}, scenario, json), "");
  EXPECT_EQ(scenario.hosts, 7U);
  EXPECT_TRUE(json);
  EXPECT_NE(read_options({"--hosts", "many"}, scenario, json), "");
  EXPECT_NE(read_options({"--hosts"}, scenario, json), "");
  EXPECT_NE(read_options({"--unknown", "7"}, scenario, json), "");
  EXPECT_NE(read_options({"--scenario", "picnic"}, scenario, json), "");
}

}  // namespace
}  // namespace kiln::fleet
