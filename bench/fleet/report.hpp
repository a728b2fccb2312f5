// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/fleet/outcome.hpp"
#include "bench/fleet/scenario.hpp"

namespace kiln::fleet {

/// Returns one JSON object on one line.
std::string json_of(const Scenario& scenario, const Outcome& outcome, const std::vector<Baseline>& baselines);
/// Returns a human-readable table.
std::string table_of(const Scenario& scenario, const Outcome& outcome, const std::vector<Baseline>& baselines);

}  // namespace kiln::fleet
