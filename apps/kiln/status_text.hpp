#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "apps/kiln/console.hpp"
#include "session/status_format.hpp"

namespace kiln::cli {

/// How many columns and lines what is shown may take; zero: any number.
struct Room {
  std::size_t columns = 0;
  std::size_t lines = 0;
};

/// How far processes are, for people. `now` is wall time.
std::string status_text(const std::vector<ProcessStatus>& processes, std::chrono::nanoseconds now, const Room& room,
                        const Console& console);
/// What of it changes with more than the time: two alike need not be shown twice.
std::string status_mark(const std::vector<ProcessStatus>& processes);

/// One JSON document, on one line where it is one of many.
std::string status_json(const std::vector<ProcessStatus>& processes, bool one_line);

}  // namespace kiln::cli
