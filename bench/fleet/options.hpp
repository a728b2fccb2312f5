#pragma once

#include <string>
#include <vector>

#include "bench/fleet/scenario.hpp"

namespace kiln::fleet {

/// Fills in a scenario from words such as `--hosts 1000`; says what is wrong with them, or nothing. The scenario is
/// prepared.
std::string read_options(const std::vector<std::string>& words, Scenario& scenario, bool& json);
std::string usage();

}  // namespace kiln::fleet
