// SPDX-License-Identifier: Apache-2.0
#include <kiln/status.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/enum_names.hpp"
#include "core/unit_access.hpp"
#include "engine/task_table.hpp"

namespace kiln {
namespace {

using State = UnitStatus::State;

double milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

UnitStatus status_of(const CompileTask& task) {
  UnitStatus unit{task.called(), task.unit_kind(), task.target.name(), task.stage};
  if (task.stage == State::Ready) unit.origin = task.result->origin;
  if (task.stage == State::Failed) unit.error = task.error->message;
  if (task.stage == State::Ready || task.stage == State::Failed) {
    unit.ms = milliseconds(task.ended - task.began);
  }
  const Digest* known = task.unit ? UnitAccess::identity_if_computed(*task.unit) : nullptr;
  if (known != nullptr) {
    unit.identity = *known;
  } else {
    unit.identity = task.identity;
  }
  return unit;
}

SessionStatus sums_of(const TaskTable& table, std::chrono::nanoseconds now) {
  SessionStatus sums;
  sums.submitted = table.tasks().size();
  sums.released = table.released();
  sums.compiled = table.ready(true).size();
  sums.cached = table.ready(false).size();
  sums.failed = table.failed().size();
  sums.cancelled = table.cancelled().size();
  sums.pending =
      table.running().size() + table.queued(Priority::Background).size() + table.queued(Priority::Foreground).size();
  if (table.tasks().empty()) return sums;
  const std::chrono::nanoseconds first = table.tasks().begin()->second->submitted;
  const std::chrono::nanoseconds last = sums.pending > 0 ? now : table.last_end();
  if (last > first) sums.wall_ms = milliseconds(last - first);
  return sums;
}

// Order in which tasks are shown to a viewer.
int rank_of(const CompileTask& task) {
  if (task.stage == State::Running) return 0;
  if (!task.waiters.empty()) return 1;
  if (task.stage == State::Failed) return 2;
  if (task.stage == State::Queued) return 3;
  return task.stage == State::Ready ? 4 : 5;
}

bool comes_before(const CompileTask* a, const CompileTask* b) {
  const int rank = rank_of(*a);
  if (rank != rank_of(*b)) return rank < rank_of(*b);
  if (rank == 4 && a->ended != b->ended) return a->ended > b->ended;
  return a->number < b->number;
}

}  // namespace

const char* to_string(UnitStatus::State state) {
  return enum_name<State::Cancelled>(state, {"queued", "running", "ready", "failed", "cancelled"});
}

SessionStatus status_of(const TaskTable& table, std::chrono::nanoseconds now) {
  SessionStatus status = sums_of(table, now);
  for (const auto& [number, task] : table.tasks()) status.units.push_back(status_of(*task));
  return status;
}

// The cost depends on the tasks that run, are waited for or are shown. There may be 100,000 tasks, and the engine's
// lock is held.
StatusSnapshot take_snapshot(const TaskTable& table, std::chrono::nanoseconds now, std::size_t maximum) {
  StatusSnapshot snapshot{sums_of(table, now)};
  std::vector<const CompileTask*> tasks(table.running().begin(), table.running().end());
  const TaskTable::List& waited = table.queued(Priority::Foreground);
  tasks.insert(tasks.end(), waited.begin(), waited.end());
  for (const CompileTask* task : tasks) snapshot.waiters += task->waiters.size();
  const auto add = [&](auto first, auto last) {
    for (std::size_t count = 0; count < maximum && first != last; ++count, ++first) tasks.push_back(*first);
  };
  add(table.failed().begin(), table.failed().end());
  add(table.queued(Priority::Background).begin(), table.queued(Priority::Background).end());
  for (const bool compiled : {false, true}) add(table.ready(compiled).rbegin(), table.ready(compiled).rend());
  add(table.cancelled().begin(), table.cancelled().end());
  const auto end = tasks.begin() + static_cast<std::ptrdiff_t>(std::min(maximum, tasks.size()));
  std::partial_sort(tasks.begin(), end, tasks.end(), comes_before);
  for (auto task = tasks.begin(); task != end; ++task) {
    snapshot.units.push_back({status_of(**task), (*task)->waiters.size()});
    if ((*task)->stage == State::Running) snapshot.units.back().status.ms = milliseconds(now - (*task)->began);
  }
  return snapshot;
}

}  // namespace kiln
