// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/audit/audit.hpp"
#include "analysis/report/event_categories.hpp"

/// The data of `kiln report` (docs/how-to/find-slow-calls.md), computed only from traces.
namespace kiln::report {

/// A wait of a thread and its cause. docs/how-to/find-slow-calls.md defines which events are waits.
struct Wait {
  std::size_t run = 0;  ///< index in Model::runs
  std::uint64_t event = 0;
  Event::Kind kind = Event::Kind::ClaimWaited;
  std::string who;  ///< name of the thread
  std::uint64_t thread = 0;
  bool background = false;  ///< true for a thread of kiln, which does not block the program
  std::string unit;         ///< unit, or operation and stage if there is no unit
  double start_ms = 0;
  double ms = 0;
  std::string reason;
};

/// A phase between the request and the first launch of a unit.
struct Phase {
  enum class Kind : unsigned char { Queue, Claim, Find, Compile, Publish, WaitForLoad, Load, Ready, Launch };
  Kind kind = Kind::Queue;
  double start_ms = 0;
  double ms = 0;
};
/// Returns the name for scripts: `queue`, `claim` …
const char* to_string(Phase::Kind kind);

/// The timeline of one unit and target from its request to its first launch.
struct UnitTimeline {
  std::uint64_t flow = 0;
  std::string unit;
  std::string target;
  std::string kernel;  ///< first kernel that was launched
  std::string origin;  ///< tier of the artifact, `compiled`, or empty if there is no result
  double start_ms = 0;
  double waited_ms = 0;  ///< longest wait of a caller for the compile
  std::optional<double> launched_ms;
  std::vector<Phase> steps;  ///< without gaps; each phase starts at the end of the previous one

  double total_ms() const { return steps.empty() ? 0 : steps.back().start_ms + steps.back().ms - start_ms; }
  /// Returns the time until the unit could be launched, without idle times.
  double work_ms() const;
};

struct Tier {
  std::string name;
  std::uint64_t count = 0;
  double ms = 0;
};

struct Miss {
  std::uint64_t event = 0;
  std::string unit;
  std::string target;
  double at_ms = 0;
  std::string reason;  ///< empty if not recorded
  std::string end;     ///< result: `compiled`, `claim_waited`, `failed`, or empty
  double cost_ms = 0;
};

/// A problem that the trace reports, such as a rejection or a lost worker.
struct Problem {
  std::uint64_t event = 0;
  std::string kind;  ///< name of the event
  std::string unit;
  double at_ms = 0;
  std::string message;
};

/// A fill or a publication of the cache of another system (`kiln jit`, `kiln run`).
struct CachePass {
  std::uint64_t event = 0;
  std::string kind;  ///< name of the event
  std::string system;
  std::string text;  ///< counts of the entries, or an error
  std::uint64_t bytes = 0;
  double at_ms = 0;
  double ms = 0;
};

/// An entry of another system that was not placed or not published.
struct SkippedEntry {
  std::uint64_t event = 0;
  std::string system;
  std::string path;   ///< empty for a list that cannot be used
  std::string state;  ///< such as `missing`, `left_out`, `conflict`, `refused`
  std::string reason;
};

/// A bar of the timeline: one event, or several adjacent events that cannot be distinguished. The texts are those of
/// the first event, truncated.
struct Bar {
  EventCategory mark = EventCategory::Other;
  std::uint64_t event = 0;  ///< id of the first event
  std::uint64_t count = 1;
  double start_ms = 0;
  double end_ms = 0;
  std::string kind;    ///< name of the event
  double ms = 0;       ///< measured duration of the first event
  std::string unit;    ///< unit, or operation and stage if there is no unit
  std::string thread;  ///< empty if the lane is the thread
  std::string origin;
  std::string message;
};

/// A lane of the timeline for a thread or a stream. Overlapping events use several rows.
struct Lane {
  std::string name;
  bool stream = false;
  std::vector<std::vector<Bar>> rows;
};

/// A run of a program: one trace of one process.
struct Run {
  std::string file;
  std::string label;  ///< `cold`, `warm`, or another label that is unique in its program
  std::string process;
  std::string command;
  std::string date;
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;
  std::uint64_t not_understood = 0;
  double span_ms = 0;                     ///< time from the first event to the end of the last one
  std::optional<double> first_launch_ms;  ///< time at which the first launch was enqueued
  std::optional<double> first_result_ms;  ///< time at which the host had the first result; none if it read none
  double waited_ms = 0;  ///< total wait time of the program's threads; overlaps on one thread count once
  std::uint64_t compiles = 0;
  double compile_ms = 0;
  std::uint64_t failures = 0;  ///< failed compiles
  std::uint64_t loads = 0;
  double load_ms = 0;
  std::uint64_t launches = 0;
  std::vector<Tier> tiers;              ///< origins of artifacts, in lookup order
  std::vector<UnitTimeline> timelines;  ///< in order of their start
  std::optional<std::size_t> first;     ///< index in `timelines` of the unit that was launched first
  std::vector<Miss> misses;
  std::vector<Problem> problems;
  std::vector<CachePass> passes;
  std::vector<SkippedEntry> skipped;
  std::vector<Lane> lanes;
  std::uint64_t not_drawn = 0;  ///< number of events that are not drawn
  audit::Report audit;
};

/// The work on one unit and target in several runs.
struct UnitComparison {
  std::string unit;
  std::string target;
  std::vector<std::optional<std::size_t>> timelines;  ///< index in Run::timelines for each of the compared runs
  double longest_ms = 0;
};

/// Runs of one program, side by side.
struct Program {
  std::string name;
  std::vector<std::size_t> runs;  ///< indexes in Model::runs, in the given order
  std::optional<std::size_t> cold;
  std::optional<std::size_t> warm;
  std::vector<UnitComparison> units;  ///< comparison of the first four runs, longest work first
};

struct Model {
  std::vector<Run> runs;
  std::vector<Program> programs;
  std::vector<Wait> waits;  ///< waits of all runs, longest first
};

struct Source {
  std::string file;
  audit::Trace trace;
};
Model make_model(const std::vector<Source>& sources);

// The steps of make_model. Each is in its own file.
std::vector<Wait> waits_of(const audit::Trace& trace);
double total_wait_ms(const std::vector<Wait>& waits);
std::vector<UnitTimeline> timelines_of(const audit::Trace& trace);
/// Returns lanes with at most `maximum` bars and counts the events that are not drawn.
std::vector<Lane> lanes_of(const audit::Trace& trace, std::size_t maximum, std::uint64_t& not_drawn);
std::vector<Program> programs_of(std::vector<Run>& runs);

/// Returns the model as JSON with truncated lists; `indent` as in json_text.
std::string model_json(const Model& model, int indent);

}  // namespace kiln::report
