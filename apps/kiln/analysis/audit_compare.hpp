// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/audit/audit.hpp"
#include "apps/kiln/arguments.hpp"
#include "apps/kiln/output/console.hpp"

namespace kiln::cli {

/// Implements `audit BEFORE AFTER`; called by audit_command.
int audit_compare_command(const Arguments& arguments, Console& console);

/// Returns the exit code of a finding; success if its severity is below that of --fail-on.
int severity_code(audit::Severity worst, const std::string& fail_on);

}  // namespace kiln::cli
