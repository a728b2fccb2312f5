#pragma once

#include <string>
#include <vector>

#include "bench/fleet/outcome.hpp"
#include "bench/fleet/scenario.hpp"

namespace kiln::fleet {

/// One object on one line.
std::string json_of(const Scenario& scenario, const Outcome& outcome, const std::vector<Baseline>& baselines);
/// For people.
std::string table_of(const Scenario& scenario, const Outcome& outcome, const std::vector<Baseline>& baselines);

}  // namespace kiln::fleet
