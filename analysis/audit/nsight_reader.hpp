// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "analysis/audit/trace_reader.hpp"

namespace kiln::audit {

/// Parses a report of Nsight Systems that was exported to SQLite: docs/internals/trace-format.md. Returns Code::Corrupt
/// for a database that is not one, and Code::Unavailable if libsqlite3 is missing.
Result<Trace> parse_nsight(std::string_view bytes);

}  // namespace kiln::audit
