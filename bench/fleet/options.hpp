// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/fleet/scenario.hpp"

namespace kiln::fleet {

/// Fills in and prepares a scenario from arguments such as `--hosts 1000`. Returns an error message, or an empty
/// string.
std::string read_options(const std::vector<std::string>& words, Scenario& scenario, bool& json);
std::string usage();

}  // namespace kiln::fleet
