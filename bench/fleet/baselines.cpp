// SPDX-License-Identifier: Apache-2.0
// Results of fleets without kiln, with the same hosts and networks.
#include <algorithm>
#include <functional>
#include <queue>

#include "bench/fleet/simulation.hpp"

namespace kiln::fleet {
namespace {

// Returns the time that one host's threads take for all keys of a batch, in order.
Time alone(const Scenario& scenario) {
  const Batch& batch = scenario.measured();
  std::priority_queue<Time, std::vector<Time>, std::greater<>> free_at;
  for (unsigned lane = 0; lane < scenario.lanes; ++lane) free_at.push(Time(0));
  Time end{};
  for (std::uint32_t key = batch.first_key; key < batch.first_key + batch.keys; ++key) {
    const Time done = free_at.top() + cost_of(scenario, key);
    free_at.pop();
    free_at.push(done);
    end = std::max(end, done);
  }
  return end;
}

Baseline every_host_compiles(const Scenario& scenario) {
  const Time one = alone(scenario);
  std::vector<double> warm;
  for (std::uint32_t host = 0; host < scenario.hosts; ++host) {
    warm.push_back(seconds(start_of(scenario, host, scenario.measured()) - scenario.measured().from + one));
  }
  return {"every host compiles", static_cast<double>(scenario.hosts), percentile(warm, 0.99), seconds(one), 0, 0};
}

// One GET of one object with all artifacts of all targets, compressed alike; the time to build the object is not
// counted.
Baseline every_host_pulls(const Scenario& scenario) {
  const Costs& costs = scenario.costs;
  const double bytes =
      static_cast<double>(scenario.content_bytes() + scenario.hint_bytes) * scenario.keys * scenario.image_factor;
  std::vector<Time> starts;
  for (std::uint32_t host = 0; host < scenario.hosts; ++host) {
    starts.push_back(start_of(scenario, host, scenario.measured()) - scenario.measured().from);
  }
  std::sort(starts.begin(), starts.end());
  std::vector<ServiceQueue> wires(std::max(costs.http_servers, 1U), ServiceQueue("wire", 1));
  std::vector<double> warm;
  std::vector<double> waited;
  std::vector<std::uint32_t> by_second;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const Time done = wires[i % wires.size()].serve(starts[i], from_seconds(bytes / costs.http_bytes_per_s)) +
                      2 * costs.round_trip + costs.http_connect;
    warm.push_back(seconds(done));
    waited.push_back(seconds(done - starts[i]));
    const auto second = static_cast<std::size_t>(seconds(starts[i]));
    if (second >= by_second.size()) by_second.resize(second + 1);
    ++by_second[second];
  }
  const double peak = *std::max_element(by_second.begin(), by_second.end());
  return {"every host pulls an image", 1,    percentile(warm, 0.99),
          percentile(waited, 0.99),    peak, bytes * scenario.hosts};
}

}  // namespace

std::vector<Baseline> baselines(const Scenario& scenario) {
  return {every_host_compiles(scenario), every_host_pulls(scenario)};
}

}  // namespace kiln::fleet
