// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "analysis/audit/trace_reader.hpp"

namespace kiln::audit {

/// Parses a trace of PyTorch's profiler (Kineto), which is JSON: docs/internals/trace-format.md. Returns Code::Corrupt
/// for text that is not one.
Result<Trace> parse_kineto(std::string_view text);

}  // namespace kiln::audit
