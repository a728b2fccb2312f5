#pragma once

#include <string>

#include "analysis/audit/audit.hpp"
#include "analysis/audit/device_usage.hpp"
#include "analysis/source/source_tree.hpp"

namespace kiln::cli {

// The JSON of `kiln audit` and `kiln device-usage`. The rules of render_json.hpp apply.
std::string audit_json(const audit::Report& report, const std::string& path, const source::SourceReport* sources);
std::string device_usage_json(const audit::DeviceUsage& usage);

}  // namespace kiln::cli
