// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/audit/audit.hpp"
#include "analysis/audit/audit_compare.hpp"
#include "analysis/audit/device_usage.hpp"
#include "analysis/source/source_tree.hpp"

namespace kiln::cli {

// The JSON of `kiln audit` and `kiln device-usage`. The rules of render_json.hpp apply.
std::string audit_json(const audit::Report& report, const std::string& path, const source::SourceReport* sources);
std::string comparison_json(const audit::Comparison& comparison, const audit::Report& before,
                            const audit::Report& after, const std::vector<std::string>& paths);
std::string device_usage_json(const audit::DeviceUsage& usage);

}  // namespace kiln::cli
