#include "apps/kiln/status_text.hpp"

#include <algorithm>
#include <string_view>

#include "apps/kiln/json_parts.hpp"
#include "apps/kiln/progress_meter.hpp"
#include "base/clock.hpp"

namespace kiln::cli {
namespace {

using State = UnitStatus::State;

constexpr std::size_t kLongestTarget = 24;

std::string counted(std::size_t count, const char* what) { return std::to_string(count) + ' ' + what; }

std::string sums_text(const Glance& glance) {
  const SessionStatus& sums = glance.sums;
  std::string text = counted(sums.submitted, "asked for: ") + counted(sums.compiled, "compiled, ") +
                     counted(sums.found, "found, ") + counted(sums.pending, "pending, ") +
                     counted(sums.failed, "failed");
  if (sums.cancelled > 0) text += counted(sums.cancelled, "cancelled").insert(0, ", ");
  if (glance.waiters > 0)
    text += glance.waiters == 1 ? "; 1 thread waits" : "; " + counted(glance.waiters, "threads wait");
  return text;
}

std::string seen_text(const Glance::Seen& seen) {
  const UnitStatus& unit = seen.status;
  if (unit.state == State::Ready)
    return unit.origin == Origin::Compiled ? "compiled" : std::string("from ") + to_string(unit.origin);
  if (unit.state == State::Failed) return printable(unit.error);
  if (seen.waiters == 0) return "";
  return seen.waiters == 1 ? "1 thread waits for it" : counted(seen.waiters, "threads wait for it");
}

std::vector<std::string> seen_row(const Glance::Seen& seen, std::chrono::nanoseconds age) {
  const UnitStatus& unit = seen.status;
  double ms = unit.ms;
  if (unit.state == State::Running) ms += std::max(0.0, std::chrono::duration<double, std::milli>(age).count());
  const bool timed = unit.state == State::Running || unit.state == State::Ready || unit.state == State::Failed;
  // The time and who waits must not be pushed out of sight by an OpenCL device's name.
  return {to_string(unit.state),
          timed ? time_text(ms) : "",
          printable(unit.unit),
          printable(unit.kind),
          cut_to(printable(unit.target), kLongestTarget),
          seen_text(seen)};
}

// Colours take no column, so they come after the cutting.
std::string coloured(const std::string& line, const Console& console) {
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

// One process: its two heads, and as many units as there is room for.
std::string block_of(const ProcessStatus& process, std::chrono::nanoseconds now, const Room& room,
                     const Console& console) {
  const auto fitted = [&](const std::string& line) { return room.columns == 0 ? line : cut_to(line, room.columns); };
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(now - process.since);
  const std::string head = std::to_string(process.pid) + "  " + printable(process.command);
  std::string text = console.bold(fitted(head)) + '\n';
  text += fitted("  since " + age_text(since) + "; " + sums_text(process.glance)) + '\n';
  std::vector<std::vector<std::string>> rows;
  for (const Glance::Seen& seen : process.glance.units) rows.push_back(seen_row(seen, now - process.written));
  const std::vector<std::string> lines = split_lines(table_text(rows, "  "));
  const std::size_t most =
      room.lines == 0 ? lines.size() : std::min(lines.size(), std::max<std::size_t>(room.lines, 4) - 3);
  for (std::size_t i = 0; i < most; ++i) text += coloured(fitted(lines[i]), console) + '\n';
  if (most < process.glance.sums.submitted) {
    text += fitted("  and " + counted(process.glance.sums.submitted - most, "more")) + '\n';
  }
  return text;
}

Json seen_object(const Glance::Seen& seen) {
  const UnitStatus& unit = seen.status;
  Json object{{"unit", unit.unit}, {"kind", unit.kind}, {"target", unit.target}, {"state", to_string(unit.state)}};
  if (unit.state == State::Ready) object["origin"] = to_string(unit.origin);
  object["ms"] = rounded(unit.ms);
  object["waiters"] = seen.waiters;
  if (!unit.error.empty()) object["error"] = unit.error;
  return object;
}

}  // namespace

std::string status_text(const std::vector<ProcessStatus>& processes, std::chrono::nanoseconds now, const Room& room,
                        const Console& console) {
  std::string text;
  Room each = room;
  if (room.lines > 0 && !processes.empty()) each.lines = std::max<std::size_t>(1, room.lines / processes.size());
  for (const ProcessStatus& process : processes) text += block_of(process, now, each, console);
  return text;
}

std::string status_mark(const std::vector<ProcessStatus>& processes) {
  std::string mark;
  for (ProcessStatus process : processes) {
    process.written = {};
    process.glance.sums.wall_ms = 0;
    for (Glance::Seen& seen : process.glance.units) {
      if (seen.status.state == State::Running) seen.status.ms = 0;
    }
    mark += encode(process);
  }
  return mark;
}

std::string status_json(const std::vector<ProcessStatus>& processes, bool one_line) {
  Json all = Json::array();
  for (const ProcessStatus& process : processes) {
    const SessionStatus& sums = process.glance.sums;
    Json units = Json::array();
    for (const Glance::Seen& seen : process.glance.units) units.push_back(seen_object(seen));
    all.push_back({{"pid", process.pid},
                   {"command", process.command},
                   {"since", utc_text(process.since)},
                   {"written", utc_text(process.written)},
                   {"submitted", sums.submitted},
                   {"compiled", sums.compiled},
                   {"found", sums.found},
                   {"pending", sums.pending},
                   {"failed", sums.failed},
                   {"cancelled", sums.cancelled},
                   {"waiters", process.glance.waiters},
                   {"wall_ms", rounded(sums.wall_ms)},
                   {"units", std::move(units)}});
  }
  const Json document{{"processes", std::move(all)}};
  return one_line ? json_text(document) : text_of(document);
}

}  // namespace kiln::cli
