// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/source/rail_patterns.hpp"

namespace kiln::source {

/// The names of kernels and operations in a trace, to look for in sources.
struct TraceNames {
  std::vector<std::string> kernels;
  std::vector<std::string> operations;

  bool empty() const { return kernels.empty() && operations.empty(); }
};

/// The names of a trace that a function mentions, as indices in TraceNames.
struct Mentions {
  std::vector<std::uint32_t> kernels;
  std::vector<std::uint32_t> operations;
};

/// A finding of a trace at the place of a hit.
struct JoinedFinding {
  std::size_t finding = 0;  ///< index in the report of the audit
  std::string reason;       ///< why they are at the same place
};

/// A place in a source that a rail matches: a suspicion, and not a finding.
struct Hit {
  std::string file;  ///< path below the searched directory; arbitrary bytes
  Rail rail = Rail::HostRead;
  std::size_t line = 0;
  std::string function;     ///< enclosing function; empty outside of functions
  std::uint32_t loops = 0;  ///< number of loops of the function that enclose it
  std::string text;         ///< the line, at most 160 bytes; arbitrary bytes of the file
  Mentions mentions;        ///< of the enclosing function
  std::vector<JoinedFinding> findings;
};

/// The result for one file.
struct FileScan {
  std::vector<Hit> hits;  ///< by line; one per line and rail
  std::uint64_t suppressed = 0;
  /// Operations that are declared outside of functions, with each name in their declaration: the functions that
  /// implement them.
  std::vector<std::pair<std::uint32_t, std::string>> implementations;
};

/// Searches a source. Accepts arbitrary bytes. A line that contains `kiln-audit: ignore` has no hits.
FileScan scan_source(std::string_view text, Language language, const TraceNames& names = {});

/// Returns the last part of the name of a function or kernel without arguments: `refine` for `void a::refine<4>(int)`.
std::string_view base_name(std::string_view name);

}  // namespace kiln::source
