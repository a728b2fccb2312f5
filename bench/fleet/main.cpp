// SPDX-License-Identifier: Apache-2.0
// kiln-fleet-sim: simulates the load of a fleet on its servers and the delays of its hosts.
// docs/internals/fleet-simulation.md explains the output.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/fleet/options.hpp"
#include "bench/fleet/report.hpp"
#include "bench/fleet/simulation.hpp"

int main(int count, char** words) {
  using namespace kiln::fleet;
  Scenario scenario;
  bool json = false;
  const std::string problem = read_options({words + 1, words + count}, scenario, json);
  if (!problem.empty()) {
    std::fprintf(stderr, "kiln-fleet-sim: %s\n%s", problem.c_str(), usage().c_str());
    return 2;
  }
  const Outcome outcome = simulate(scenario);
  const std::vector<Baseline> others = baselines(scenario);
  const std::string text = json ? json_of(scenario, outcome, others) : table_of(scenario, outcome, others);
  std::fputs(text.c_str(), stdout);
  return 0;
}
