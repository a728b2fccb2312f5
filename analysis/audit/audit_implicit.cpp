// SPDX-License-Identifier: Apache-2.0
// Divides the work of a trace that belongs to no numbered run into runs: by declared operation and thread, otherwise by
// thread and stream (implicit operations).
#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

// The operation that an event belongs to, without its stream. A workflow is identified by its number.
using Owner = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::string_view>;

Owner owner_of(const RecordedEvent& event) {
  const OperationContext& work = event.event.context;
  if (work.dispatch != 0) return {event.thread, work.dispatch, 0, {}};
  return {event.thread, 0, work.workflow, work.workflow != 0 ? std::string_view() : work.operation};
}

bool is_undeclared(const RecordedEvent& event) {
  return event.event.context.operation.empty() && event.event.context.workflow == 0;
}

// An event that names no stream, or one without launches, uses the memory or the results of the launches around it.
bool lacks_stream(const RecordedEvent& event, const std::unordered_set<std::uint64_t>& with_launches) {
  if (is(event, Event::Kind::Launched) || is(event, Event::Kind::CalledCompiled)) return false;
  return event.event.stream == 0 || with_launches.count(event.event.stream) == 0;
}

// Returns the stream of each loose event. Work on the default stream, without a stream and on streams without launches
// is attributed to the stream
// of a launch of the same thread: reads and waits to the last launch, allocations and copies to the device to the next.
std::vector<std::uint64_t> streams_of(const Events& loose) {
  std::vector<std::uint64_t> streams(loose.size());
  std::vector<std::optional<std::uint64_t>> before(loose.size());
  std::unordered_map<std::uint64_t, std::uint64_t> launched;  // stream of the nearest launch, by thread
  std::unordered_set<std::uint64_t> with_launches;
  for (std::size_t i = 0; i < loose.size(); ++i) {
    if (is_launch(*loose[i])) with_launches.insert(loose[i]->event.stream);
    if (!is_undeclared(*loose[i])) continue;
    if (is_launch(*loose[i])) launched[loose[i]->thread] = loose[i]->event.stream;
    if (const auto at = launched.find(loose[i]->thread); at != launched.end()) before[i] = at->second;
  }
  launched.clear();
  for (std::size_t i = loose.size(); i-- > 0;) {
    const RecordedEvent& event = *loose[i];
    if (!is_undeclared(event)) continue;
    if (is_launch(event)) launched[event.thread] = event.event.stream;
    streams[i] = event.event.stream;
    if (!lacks_stream(event, with_launches)) continue;
    const auto at = launched.find(event.thread);
    const std::optional<std::uint64_t> after = at != launched.end() ? std::optional(at->second) : std::nullopt;
    const bool of_last = is_copy_out(event) || is(event, Event::Kind::Synchronized);
    streams[i] = (of_last ? before[i] : after).value_or((of_last ? after : before[i]).value_or(event.event.stream));
  }
  return streams;
}

// Creates the runs without a number and gives them names that do not change between two executions of a program.
class Grouping {
 public:
  explicit Grouping(std::vector<Run>& runs) : runs_(runs) {}

  // Notes that the thread of this event works for its owner now.
  void enter(const RecordedEvent& event) {
    Turn& turn = turns_[event.thread];
    const Owner owner = owner_of(event);
    if (turn.owner == owner) return;
    turn.owner = owner;
    ++turn.number;
  }

  // Adds the event to its run and returns the index of the run.
  std::size_t add(const RecordedEvent& event, std::uint64_t stream) {
    const auto [at, fresh] = place_.try_emplace({owner_of(event), stream}, Slot{runs_.size(), 0});
    const std::uint64_t turn = turns_[event.thread].number;
    if (fresh) start(event, stream);
    Run& run = runs_[at->second.run];
    if (!fresh && at->second.turn != turn) run.breaks.push_back(run.events.size());
    at->second.turn = turn;
    run.events.push_back(&event);
    run.rows = std::max(run.rows, event.event.context.rows);
    return at->second.run;
  }

 private:
  struct Turn {
    Owner owner;
    std::uint64_t number = 0;  // number of changes of the owner
  };
  struct Slot {
    std::size_t run = 0;
    std::uint64_t turn = 0;
  };

  void start(const RecordedEvent& event, std::uint64_t stream) {
    const OperationContext& work = event.event.context;
    Run& run = runs_.emplace_back();
    run.workflow = work.workflow;
    run.residency = work.residency;
    run.implicit = work.operation.empty() || work.workflow != 0;
    run.operation = work.operation;
    if (!run.operation.empty()) return;
    run.operation = "thread " + std::to_string(ordinal(threads_, event.thread)) + ", ";
    run.operation += stream == 0 ? "default stream" : "stream " + std::to_string(ordinal(streams_, stream));
  }
  static std::size_t ordinal(std::unordered_map<std::uint64_t, std::size_t>& all, std::uint64_t of) {
    return all.try_emplace(of, all.size() + 1).first->second;
  }

  std::vector<Run>& runs_;
  std::unordered_map<std::uint64_t, Turn> turns_;  // by thread
  std::map<std::pair<Owner, std::uint64_t>, Slot> place_;
  std::unordered_map<std::uint64_t, std::size_t> threads_;
  std::unordered_map<std::uint64_t, std::size_t> streams_;
};

}  // namespace

void add_unnumbered_runs(const Trace& trace, std::vector<Run>& runs, std::vector<std::uint32_t>& run_index) {
  Events loose;
  for (const RecordedEvent& event : trace.events) {
    if (event.event.context.dispatch == 0 && is_work(event)) loose.push_back(&event);
  }
  const std::vector<std::uint64_t> streams = streams_of(loose);
  Grouping grouping(runs);
  std::size_t next = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const RecordedEvent& event = trace.events[i];
    const bool is_loose = next < loose.size() && loose[next] == &event;
    if (is_loose || event.event.context.dispatch != 0) grouping.enter(event);
    if (is_loose) run_index[i] = static_cast<std::uint32_t>(grouping.add(event, streams[next++]));
  }
}

}  // namespace kiln::audit
