// SPDX-License-Identifier: Apache-2.0
// Groups the runs of the same program for comparison.
#include <algorithm>
#include <map>

#include "analysis/report/model.hpp"

namespace kiln::report {
namespace {

constexpr std::size_t kMaxCompared = 4;

bool is_cold(const Run& run) { return run.compiles != 0; }

bool is_warm(const Run& run) {
  return run.compiles == 0 && std::any_of(run.tiers.begin(), run.tiers.end(),
                                          [](const Tier& tier) { return tier.name != "compiled" && tier.count != 0; });
}

// Labels the runs: `cold`, and if there are several, `cold 2`.
void label(std::vector<Run>& runs, const Program& program) {
  std::size_t cold = 0;
  std::size_t warm = 0;
  std::size_t other = 0;
  for (const std::size_t index : program.runs) {
    Run& run = runs[index];
    std::size_t& number = is_cold(run) ? cold : is_warm(run) ? warm : other;
    run.label = is_cold(run) ? "cold" : is_warm(run) ? "warm" : "run";
    if (++number > 1) run.label += ' ' + std::to_string(number);
  }
}

std::vector<UnitComparison> units_of(const std::vector<Run>& runs, const Program& program) {
  const std::size_t compared = std::min(program.runs.size(), kMaxCompared);
  std::map<std::pair<std::string, std::string>, UnitComparison> units;
  for (std::size_t i = 0; i < compared; ++i) {
    const std::vector<UnitTimeline>& timelines = runs[program.runs[i]].timelines;
    for (std::size_t index = 0; index < timelines.size(); ++index) {
      const UnitTimeline& timeline = timelines[index];
      UnitComparison& unit = units[{timeline.unit, timeline.target}];
      unit.timelines.resize(compared);
      std::optional<std::size_t>& longest = unit.timelines[i];
      if (longest && timelines[*longest].work_ms() > timeline.work_ms()) continue;
      longest = index;
      unit.longest_ms = std::max(unit.longest_ms, timeline.work_ms());
    }
  }
  std::vector<UnitComparison> all;
  for (auto& [name, unit] : units) {
    std::tie(unit.unit, unit.target) = name;
    all.push_back(std::move(unit));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const UnitComparison& a, const UnitComparison& b) { return a.longest_ms > b.longest_ms; });
  return all;
}

}  // namespace

std::vector<Program> programs_of(std::vector<Run>& runs) {
  std::vector<Program> programs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto same = std::find_if(programs.begin(), programs.end(),
                             [&](const Program& program) { return program.name == runs[i].process; });
    if (same == programs.end()) same = programs.insert(programs.end(), {runs[i].process, {}, {}, {}, {}});
    same->runs.push_back(i);
    if (!same->cold && is_cold(runs[i])) same->cold = i;
    if (!same->warm && is_warm(runs[i])) same->warm = i;
  }
  for (Program& program : programs) {
    label(runs, program);
    program.units = units_of(runs, program);
  }
  return programs;
}

}  // namespace kiln::report
