// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "apps/kiln/output/console.hpp"
#include "engine/status_format.hpp"

namespace kiln::cli {

/// The size of the screen in columns and lines; 0 means unlimited.
struct ScreenSize {
  std::size_t columns = 0;
  std::size_t lines = 0;
};

/// Formats the status of processes as human-readable text. `now` is wall time.
Text status_text(const std::vector<ProcessStatus>& processes, std::chrono::nanoseconds now, const ScreenSize& room,
                 const Console& console);
/// Returns the parts of the status that do not change with time alone. Equal marks need not be printed again.
std::string status_mark(const std::vector<ProcessStatus>& processes);

/// Returns one JSON document; as a single line if `one_line` is set.
std::string status_json(const std::vector<ProcessStatus>& processes, bool one_line);

}  // namespace kiln::cli
