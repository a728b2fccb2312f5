// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/output/status_text.hpp"

#include <algorithm>
#include <string_view>

#include "apps/kiln/output/json_common.hpp"
#include "apps/kiln/output/progress_meter.hpp"
#include "base/clock.hpp"

namespace kiln::cli {
namespace {

using State = UnitStatus::State;

constexpr std::size_t kMaxTargetLength = 24;

std::string counted(std::size_t count, const char* what) { return std::to_string(count) + ' ' + what; }

std::string sums_text(const StatusSnapshot& snapshot) {
  const SessionStatus& sums = snapshot.totals;
  std::string text = counted(sums.submitted, "requested: ") + counted(sums.compiled, "compiled, ") +
                     counted(sums.cached, "cached, ") + counted(sums.pending, "pending, ") +
                     counted(sums.failed, "failed");
  if (sums.cancelled > 0) text += counted(sums.cancelled, "cancelled").insert(0, ", ");
  if (snapshot.waiters > 0)
    text += snapshot.waiters == 1 ? "; 1 thread waiting" : "; " + counted(snapshot.waiters, "threads waiting");
  return text;
}

std::string seen_text(const StatusSnapshot::UnitSnapshot& seen) {
  const UnitStatus& unit = seen.status;
  if (unit.state == State::Ready)
    return unit.origin == Origin::Compiled ? "compiled" : std::string("from ") + to_string(unit.origin);
  if (unit.state == State::Failed) return printable(unit.error);
  if (seen.waiters == 0) return "";
  return seen.waiters == 1 ? "1 thread waiting" : counted(seen.waiters, "threads waiting");
}

std::vector<std::string> seen_row(const StatusSnapshot::UnitSnapshot& seen, std::chrono::nanoseconds age) {
  const UnitStatus& unit = seen.status;
  double ms = unit.ms;
  if (unit.state == State::Running) ms += std::max(0.0, std::chrono::duration<double, std::milli>(age).count());
  const bool timed = unit.state == State::Running || unit.state == State::Ready || unit.state == State::Failed;
  // The long name of an OpenCL device must not push the time and the waiters out of the line.
  return {to_string(unit.state),
          timed ? time_text(ms) : "",
          printable(unit.unit),
          printable(unit.kind),
          cut_to(printable(unit.target), kMaxTargetLength),
          seen_text(seen)};
}

// Adds colors after the line is truncated, because they take no columns.
Text colored(const std::string& line, const Console& console) {
  const std::string_view state = std::string_view(line).substr(0, line.find(' ', 2));
  const std::string rest = line.substr(state.size());
  if (state == "  running") return console.yellow(state) + rest;
  if (state == "  ready") return console.green(state) + rest;
  if (state == "  failed") return console.red(state) + rest;
  return line;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Returns the block of one process: two header lines, and as many units as fit.
Text block_of(const ProcessStatus& process, std::chrono::nanoseconds now, const ScreenSize& room,
              const Console& console) {
  const auto fitted = [&](const std::string& line) { return room.columns == 0 ? line : cut_to(line, room.columns); };
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(now - process.since);
  const std::string head = std::to_string(process.pid) + "  " + printable(process.command);
  Text text = console.bold(fitted(head)) + '\n';
  text += fitted("  started " + age_text(since) + "; " + sums_text(process.snapshot)) + '\n';
  std::vector<std::vector<std::string>> rows;
  for (const StatusSnapshot::UnitSnapshot& seen : process.snapshot.units)
    rows.push_back(seen_row(seen, now - process.written));
  const std::vector<std::string> lines = split_lines(table_text(rows, "  "));
  const std::size_t maximum =
      room.lines == 0 ? lines.size() : std::min(lines.size(), std::max<std::size_t>(room.lines, 4) - 3);
  for (std::size_t i = 0; i < maximum; ++i) text += colored(fitted(lines[i]), console) + '\n';
  if (maximum < process.snapshot.totals.submitted) {
    text += fitted("  and " + counted(process.snapshot.totals.submitted - maximum, "more")) + '\n';
  }
  return text;
}

Json to_json(const StatusSnapshot::UnitSnapshot& seen) {
  const UnitStatus& unit = seen.status;
  Json object{{"unit", unit.unit}, {"kind", unit.kind}, {"target", unit.target}, {"state", to_string(unit.state)}};
  if (unit.state == State::Ready) object["origin"] = to_string(unit.origin);
  object["ms"] = rounded(unit.ms);
  object["waiters"] = seen.waiters;
  if (!unit.error.empty()) object["error"] = unit.error;
  return object;
}

Json to_json(const ProcessStatus& process) {
  const SessionStatus& sums = process.snapshot.totals;
  Json units = Json::array();
  for (const StatusSnapshot::UnitSnapshot& seen : process.snapshot.units) units.push_back(to_json(seen));
  return {{"pid", process.pid},
          {"command", process.command},
          {"since", format_utc(process.since)},
          {"written", format_utc(process.written)},
          {"submitted", sums.submitted},
          {"compiled", sums.compiled},
          {"cached", sums.cached},
          {"pending", sums.pending},
          {"failed", sums.failed},
          {"cancelled", sums.cancelled},
          {"waiters", process.snapshot.waiters},
          {"wall_ms", rounded(sums.wall_ms)},
          {"units", std::move(units)}};
}

}  // namespace

Text status_text(const std::vector<ProcessStatus>& processes, std::chrono::nanoseconds now, const ScreenSize& room,
                 const Console& console) {
  Text text;
  ScreenSize each = room;
  if (room.lines > 0 && !processes.empty()) each.lines = std::max<std::size_t>(1, room.lines / processes.size());
  for (const ProcessStatus& process : processes) text += block_of(process, now, each, console);
  return text;
}

std::string status_mark(const std::vector<ProcessStatus>& processes) {
  std::string mark;
  for (ProcessStatus process : processes) {
    process.written = {};
    process.snapshot.totals.wall_ms = 0;
    for (StatusSnapshot::UnitSnapshot& seen : process.snapshot.units) {
      if (seen.status.state == State::Running) seen.status.ms = 0;
    }
    mark += encode(process);
  }
  return mark;
}

std::string status_json(const std::vector<ProcessStatus>& processes, bool one_line) {
  Json all = Json::array();
  for (const ProcessStatus& process : processes) all.push_back(to_json(process));
  const Json document{{"processes", std::move(all)}};
  return text_of(document, one_line ? -1 : 2);
}

}  // namespace kiln::cli
