#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/marks.hpp"
#include "runtime/audit.hpp"

/// What `kiln report` shows (docs/report.md), as values: traces go in, nothing else does.
namespace kiln::report {

/// Somebody stood still: who, for what and why. docs/report.md says which events are waits.
struct Wait {
  std::size_t run = 0;  ///< in Model::runs
  std::uint64_t event = 0;
  Event::Kind kind = Event::Kind::Waited;
  std::string who;  ///< the thread
  std::uint64_t thread = 0;
  bool background = false;  ///< it was a thread of kiln's own: the program went on meanwhile
  std::string unit;         ///< or the operation and its stage, where no unit is concerned
  double start_ms = 0;
  double ms = 0;
  std::string why;
};

/// A part of the way from a request to the first launch.
struct Step {
  enum class Kind : unsigned char { Queue, Claim, Find, Compile, Publish, Unclaimed, Load, Ready, Launch };
  Kind kind = Kind::Queue;
  double start_ms = 0;
  double ms = 0;
};
/// For scripts and style sheets: `queue`, `claim` …
const char* to_string(Step::Kind kind);
/// For people: what is waited for.
const char* words_for(Step::Kind kind);

/// All that happened to one unit for one target until it was first launched.
struct Way {
  std::uint64_t flow = 0;
  std::string unit;
  std::string target;
  std::string kernel;  ///< the first that was launched
  std::string origin;  ///< the tier that it came from, `compiled`, or empty: nothing came of it
  double start_ms = 0;
  double waited_ms = 0;  ///< the longest that a caller waited for its compile
  std::optional<double> launched_ms;
  std::vector<Step> steps;  ///< without gaps: each begins where the one before ended

  double total_ms() const { return steps.empty() ? 0 : steps.back().start_ms + steps.back().ms - start_ms; }
  double ms_of(Step::Kind kind) const;
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
  std::string why;  ///< empty: the trace does not say
  std::string end;  ///< what came of it: `compiled`, `waited`, `failed`, or empty
  double cost_ms = 0;
};

/// Something that went another way than it should.
struct Trouble {
  std::uint64_t event = 0;
  Event::Kind kind = Event::Kind::Hit;
  std::string unit;
  double at_ms = 0;
  std::string message;
};

/// Something drawn: an event, or several that are too close to each other to be told apart.
struct Bar {
  Mark mark = Mark::Other;
  std::uint64_t event = 0;  ///< the first
  std::uint64_t count = 1;
  double start_ms = 0;
  double end_ms = 0;
  std::string text;
};

/// A thread or a stream, in as many rows as things ran beside each other on it.
struct Lane {
  std::string name;
  bool stream = false;
  std::vector<std::vector<Bar>> rows;
};

/// One trace: one process.
struct Run {
  std::string file;
  std::string label;  ///< `cold`, `warm`, or what tells it apart from the others of its program
  std::string process;
  std::string command;
  std::string date;
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;
  std::uint64_t not_understood = 0;
  double span_ms = 0;                     ///< from the first event to the end of the last
  std::optional<double> first_launch_ms;  ///< when it had been put on its stream
  double waited_ms = 0;                   ///< of the program's threads; what overlaps on one of them counts once
  std::uint64_t compiles = 0;
  double compile_ms = 0;
  std::uint64_t failures = 0;  ///< of compiles
  std::uint64_t loads = 0;
  double load_ms = 0;
  std::uint64_t launches = 0;
  std::vector<Tier> tiers;           ///< where artifacts came from, in the order in which tiers are asked
  std::vector<Way> ways;             ///< in the order in which they began
  std::optional<std::size_t> first;  ///< in `ways`: the unit that was launched first
  std::vector<Miss> misses;
  std::vector<Trouble> troubles;
  std::vector<Lane> lanes;
  std::uint64_t not_drawn = 0;  ///< events
  audit::Report audit;
};

/// Runs of one program, side by side.
struct Program {
  std::string name;
  std::vector<std::size_t> runs;  ///< in Model::runs, in the order in which they were given
  std::optional<std::size_t> cold;
  std::optional<std::size_t> warm;
};

struct Model {
  std::vector<Run> runs;
  std::vector<Program> programs;
  std::vector<Wait> waits;  ///< of all runs, the longest first
};

struct Source {
  std::string file;
  audit::Trace trace;
};
Model make_model(const std::vector<Source>& sources);

// The parts of it, each in the file of its name.
std::vector<Wait> waits_of(const audit::Trace& trace);
double stood_still(const std::vector<Wait>& waits);
std::vector<Way> ways_of(const audit::Trace& trace);
/// At most `most` bars; what is left out is counted.
std::vector<Lane> lanes_of(const audit::Trace& trace, std::size_t most, std::uint64_t& not_drawn);
std::vector<Program> programs_of(std::vector<Run>& runs);

/// As JSON, with lists cut where they are longer than somebody reads; `indent` as of json_text.
std::string model_json(const Model& model, int indent);

}  // namespace kiln::report
