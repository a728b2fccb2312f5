#include "apps/kiln/calibration_text.hpp"

#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "apps/kiln/console.hpp"

namespace kiln::cli {
namespace {

using runtime::Backend;
using runtime::Crossovers;
using runtime::Timing;

// Small operations take less than a hundredth of a millisecond.
std::string short_time(double ms) {
  if (ms >= 0.1) return time_text(ms);
  char text[32];
  std::snprintf(text, sizeof text, ms < 0.01 ? "%.2f µs" : "%.1f µs", ms * 1000);
  return text;
}

std::string timing_text(const Timing& timing) {
  return short_time(timing.median_ms) + " ± " + std::to_string(std::lround(timing.spread * 50)) + " %";
}

std::string crossover_text(const Crossovers& operation) {
  if (operation.rows.empty()) return "no device is here: cpu";
  std::string text;
  for (const auto& [backend, rows] : operation.rows) {
    text += (text.empty() ? "" : "; ") + std::string(to_string(backend));
    text += rows == runtime::kNever ? " is never worth it" : " from " + count_text(rows) + " rows on";
  }
  return text;
}

std::string times_table(const Crossovers& operation) {
  std::vector<std::vector<std::string>> table = {{"ROWS"}};
  std::set<std::uint64_t> sizes;
  for (const auto& [backend, timings] : operation.evidence) {
    table[0].push_back(backend == Backend::Cpu ? "CPU" : backend == Backend::OpenCl ? "OPENCL" : "CUDA");
    for (const Timing& timing : timings) sizes.insert(timing.rows);
  }
  for (const std::uint64_t rows : sizes) {
    std::vector<std::string>& line = table.emplace_back(1, count_text(rows));
    for (const auto& [backend, timings] : operation.evidence) {
      std::string& cell = line.emplace_back("-");
      for (const Timing& timing : timings) {
        if (timing.rows == rows) cell = timing_text(timing);
      }
    }
  }
  return table_text(table, "  ");
}

}  // namespace

std::string count_text(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string calibration_text(const Crossovers& operation) {
  std::string text = printable(operation.operation) + ": " + crossover_text(operation) + '\n' + times_table(operation);
  for (const auto& [backend, stages] : operation.longest) {
    const auto timings = operation.evidence.find(backend);
    if (stages.empty() || timings == operation.evidence.end() || timings->second.empty()) continue;
    text += std::string("  longest stages, ") + to_string(backend) + ", " + count_text(timings->second.back().rows) +
            " rows: ";
    std::string list;
    for (const auto& stage : stages) {
      list += (list.empty() ? "" : ", ") + printable(stage.stage) + " " + short_time(stage.ms) + " (" +
              printable(stage.where) + ")";
    }
    text += list + '\n';
  }
  for (const std::string& note : operation.notes) text += "  note: " + printable(note) + '\n';
  return text;
}

}  // namespace kiln::cli
