#pragma once

#include <string>

#include "runtime/audit.hpp"
#include "runtime/health.hpp"

namespace kiln::cli {

// The JSON of `kiln audit` and `kiln health`, under the rules of render_json.hpp.
std::string audit_json(const audit::Report& report, const std::string& path);
std::string health_json(const audit::Health& health);

}  // namespace kiln::cli
