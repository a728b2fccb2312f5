// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/audit/audit.hpp"
#include "analysis/source/source_tree.hpp"
#include "apps/kiln/arguments.hpp"
#include "apps/kiln/output/console.hpp"
#include "base/json.hpp"

namespace kiln::cli {

/// Searches the directory of --source and joins the hits with the findings of a trace, if there is one.
Result<source::SourceReport> search_sources(const std::string& directory, const audit::Trace* trace,
                                            const audit::Report* report);
/// Prints the hits with the findings of `report`, which can be null.
void print_sources(const source::SourceReport& sources, const audit::Report* report, Console& console);
/// Returns the member `source` of the JSON of `kiln audit`.
Json source_json(const source::SourceReport& sources, const audit::Report* report);

/// Runs `kiln audit --source DIR` without a trace.
int audit_source_command(const Arguments& arguments, Console& console);

}  // namespace kiln::cli
