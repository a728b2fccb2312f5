// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/fleet_place.hpp"
#include "engine/compile_task.hpp"
#include "engine/status_snapshot.hpp"

namespace kiln {

/// All tasks of an engine and the queues of those that wait for a thread. Only adding a task allocates memory, so no
/// run is lost or hangs because it could not be queued. Not thread-safe; the owner synchronizes access.
class TaskTable {
 public:
  /// Only this table writes `index`; any thread can read it.
  TaskTable(ReadyIndex& index, std::size_t max_queued) : index_(index), max_queued_(max_queued) {}

  /// Returns all tasks by number, which is the order of submission.
  const std::map<std::uint64_t, std::unique_ptr<CompileTask>>& tasks() const { return tasks_; }
  using List = std::list<CompileTask*>;
  /// Returns the tasks that run or are parked behind a running task, in the order in which they started.
  const List& running() const { return running_; }
  /// Returns the tasks that wait for a thread, the next to run first.
  const List& queued(Priority priority) const { return queues_[static_cast<std::size_t>(priority)]; }
  /// Returns the ready tasks, either compiled by this process or not, the newest last.
  const List& ready(bool compiled) const { return ready_[compiled ? 1 : 0]; }
  const List& failed() const { return failed_; }
  const List& cancelled() const { return cancelled_; }
  /// Returns the time at which the last run ended.
  std::chrono::nanoseconds last_end() const { return last_end_; }
  std::size_t released() const { return released_; }
  bool full() const { return queues_[0].size() + queues_[1].size() >= max_queued_; }

  /// Returns the task of a request, by the identity of its unit if it is hashed and by its address otherwise; null if
  /// none.
  CompileTask* find(const CompileRequest& request);
  /// Returns the task with this number; null if it was removed.
  CompileTask* find(std::uint64_t number) const;
  /// Appends every task for units equal to this one, regardless of the object they were requested with, for this target
  /// or, if it is null, for every target. The unit and those of `unhashed_units` must be hashed. The cost depends on
  /// the number of matches, not on the number of tasks.
  void find_equal(const Unit& unit, const Target* target, std::vector<CompileTask*>& found);
  /// Appends the unhashed units that may be equal to this one.
  void unhashed_units(const Unit& unit, std::vector<Unit>& units) const;

  /// Adds a task for a request that has none.
  CompileTask& add(const CompileRequest& request, std::chrono::nanoseconds now);
  /// Indexes a task with a hashed unit. If a task for an equal unit exists, that one stays, queued in place of this one
  /// if needed, and this one, which has no waiters, is removed.
  CompileTask& identify(CompileTask& task);
  /// Removes a task from the index, so that a later request gets a new task. It is removed when it completes.
  void detach(CompileTask& task);
  /// Removes a task that does not run.
  void remove(CompileTask& task);
  /// Removes a task now or when it completes, and counts it as released.
  void release(CompileTask& task);

  /// Queues a task that is not queued.
  void enqueue(CompileTask& task, Priority priority);
  /// Moves a queued task to the queue of tasks that callers wait for.
  void promote(CompileTask& task);
  /// Dequeues the next task of this priority and sets it Running; null if there is none. Background tasks are taken
  /// from `place` to the end of their queue, then again from the place in the rest.
  CompileTask* take(Priority priority, std::chrono::nanoseconds now, const FleetPlace& place = {});
  /// Sets the stage of a task that no longer runs.
  void set_failed(CompileTask& task);
  void set_cancelled(CompileTask& task);
  /// Records the end of a run.
  void end_run(CompileTask& task, std::chrono::nanoseconds now);
  /// Sets the result of a task: it becomes Ready, and readers of the index find it.
  void set_result(CompileTask& task, ResolveResultPtr result) noexcept;
  /// Removes a result from the index because it is unusable or must be checked first.
  void hide_result(const CompileTask& task) noexcept;
  /// Returns the number of queued units of the same kind and target. It is an estimate that examines only the next few
  /// hundred tasks and stops counting at a small number.
  std::size_t queued_similar(const CompileTask& task) const;

 private:
  using Hashed = std::unordered_multimap<Digest, CompileTask*>;
  using Unhashed = std::unordered_multimap<std::uint64_t, CompileTask*>;

  CompileTask* find_hashed(const Digest& identity, const Target& target) const;
  /// Removes a task from the tables that `find` uses.
  void unindex(CompileTask& task);
  void move(CompileTask& task, List& to);
  /// Must be called before a task leaves its list.
  void leave_list(const CompileTask& task);
  List& queue(Priority priority) { return queues_[static_cast<std::size_t>(priority)]; }

  ReadyIndex& index_;
  const std::size_t max_queued_;
  std::map<std::uint64_t, std::unique_ptr<CompileTask>> tasks_;
  std::uint64_t numbers_ = 0;
  std::size_t released_ = 0;
  std::chrono::nanoseconds last_end_{0};
  // Each task is in one of these lists, by its stage.
  std::array<List, static_cast<std::size_t>(Priority::Foreground) + 1> queues_;  // by priority
  List::iterator next_ = queues_[0].end();  // the next background task; `end` means that it is determined by the place
  List running_;
  std::array<List, 2> ready_;  // cached, and compiled
  List failed_;
  List cancelled_;
  Hashed hashed_;        // by the identity of their units
  Unhashed by_address_;  // all others; keyed by fingerprint, matched by address
};

/// Returns the state of all tasks at this point in time.
SessionStatus status_of(const TaskTable& table, std::chrono::nanoseconds now);
/// Returns the totals of all tasks, and the `maximum` tasks that are most relevant to a viewer.
StatusSnapshot take_snapshot(const TaskTable& table, std::chrono::nanoseconds now, std::size_t maximum);

}  // namespace kiln
