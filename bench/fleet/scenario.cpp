// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/scenario.hpp"

#include <algorithm>
#include <cmath>

#include "core/fleet_place.hpp"
#include "remote/jitter.hpp"

namespace kiln::fleet {
namespace {

double drawn(std::uint64_t seed, std::uint64_t what, std::uint64_t number) {
  return Jitter((seed * 0x100000001b3U) ^ (what << 56U) ^ (number * 0x9e3779b97f4a7c15U)).unit();
}
enum Drawn : std::uint64_t { kCost = 1, kStart, kOrder };

Batch over(double from, double spread, std::uint32_t first_key, std::uint32_t keys) {
  return {from_seconds(from), 1, {}, from_seconds(spread), first_key, keys};
}

}  // namespace

Costs costs_of_loopback() {
  Costs costs;
  costs.machine_cores = 2;
  costs.round_trip = std::chrono::microseconds(100);
  costs.http_connect = std::chrono::microseconds(200);
  costs.client_http = std::chrono::microseconds(105);
  costs.client_lease = std::chrono::microseconds(38);
  return costs;
}

std::string scenario_names() { return "cold_rollout, warmed_rollout, rolling_restart, outage_herd, outage_wait"; }

bool prepare(Scenario& scenario) {
  const double window = scenario.window;
  scenario.batches.clear();
  if (scenario.name == "cold_rollout") {
    scenario.batches = {over(0, window, 0, scenario.keys)};
  } else if (scenario.name == "warmed_rollout") {
    // One host, or the build, has published everything before.
    scenario.published = 1;
    scenario.batches = {over(0, window, 0, scenario.keys)};
  } else if (scenario.name == "rolling_restart") {
    // The hosts of a wave restart within two seconds; 90 % of the keys are those of the previous release.
    scenario.published = 0.9;
    Batch batch = over(0, 2, 0, scenario.keys);
    batch.waves = scenario.waves;
    batch.gap = from_seconds(window / scenario.waves);
    scenario.batches = {batch};
  } else if (scenario.name == "outage_herd" || scenario.name == "outage_wait") {
    // A few keys during the outage, so that every host has detected it; then a release that was delayed.
    const std::uint32_t before = std::min(4U, scenario.keys);
    scenario.outage = {Time(0), from_seconds(60)};
    const double after = scenario.name == "outage_herd" ? 60 : 60 + 15;
    scenario.batches = {over(0, 30, 0, before), over(after, window, before, scenario.keys)};
  } else {
    return false;
  }
  return true;
}

std::uint32_t Scenario::all_keys() const {
  std::uint32_t maximum = 0;
  for (const Batch& batch : batches) maximum = std::max(maximum, batch.first_key + batch.keys);
  return maximum;
}

Time cost_of(const Scenario& scenario, std::uint32_t key) {
  return from_seconds(scenario.min_cost + (scenario.max_cost - scenario.min_cost) * drawn(scenario.seed, kCost, key));
}

bool published_before(const Scenario& scenario, std::uint32_t key) {
  // Spread evenly over the keys, so that the share is exact.
  return std::floor((key + 1) * scenario.published + 1e-9) > std::floor(key * scenario.published + 1e-9);
}

Time start_of(const Scenario& scenario, std::uint32_t host, const Batch& batch) {
  const double place = drawn(scenario.seed, kStart + (batch.first_key << 2U), host);
  const double wave = std::floor(place * batch.waves);
  const double within = place * batch.waves - wave;
  return batch.from + from_seconds(seconds(batch.gap) * wave + seconds(batch.spread) * within);
}

std::uint32_t key_at(const Scenario& scenario, std::uint32_t host, const Batch& batch, std::uint32_t n) {
  const FleetPlace place = scenario.shuffled ? FleetPlace(drawn(scenario.seed, kOrder, host)) : FleetPlace();
  return batch.first_key + static_cast<std::uint32_t>(place.nth(batch.keys, n));
}

}  // namespace kiln::fleet
