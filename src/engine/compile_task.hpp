#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <kiln/status.hpp>

#include "base/concurrent_index.hpp"
#include "base/mutex.hpp"
#include "engine/engine.hpp"

namespace kiln {

/// The state of a thread that waits for a task, stored on the stack of that thread. The result is final once `outcome`
/// is set, regardless of later changes of the task.
struct Waiter {
  std::optional<Result<ResolveResultPtr>> outcome;
  Condition woken;
};

/// The state of one compile request. The engine's mutex guards all non-constant members. A task exists until it is
/// released, and is never destroyed while it is Running.
struct CompileTask {
  using Stage = UnitStatus::State;

  CompileTask(const CompileRequest& what, std::uint64_t its_number, std::uint64_t its_fingerprint)
      : number(its_number), fingerprint(its_fingerprint), target(what.target), unit(what.unit),
        load(what.load_on_device) {}

  const std::uint64_t number;       // in the order of submission, starting at 1
  const std::uint64_t fingerprint;  // fingerprint of the unit
  const Target target;
  // Set and constant while the task is Queued or Running. The parts that can be fetched again are dropped after
  // loading.
  std::optional<Unit> unit;
  std::string label;               // label of the unit, after the unit was dropped
  std::string kind;                // kind of the unit, after the unit was dropped
  bool load = false;               // from the request
  std::optional<Digest> identity;  // identity of the unit, once the task is indexed by it

  Stage stage = Stage::Cancelled;
  Priority priority = Priority::Background;
  std::list<CompileTask*>* list = nullptr;           // list of the task table, by stage
  std::list<CompileTask*>::iterator queue_position;  // position in that list
  ResolveResultPtr result;                           // result, if Ready
  bool is_stale = false;                             // `result` must be checked before it is used again
  bool is_detached = false;                          // no longer indexed; runs for its current waiters and then ends
  std::uint64_t refreshes = 0;                       // number of refreshes of its inputs
  std::optional<Error> error;                        // error, if Failed
  std::unique_ptr<const Recipe> recipe;              // inputs of the failed compile, to detect a change
  std::uint64_t completion_count = 0;                // number of completions
  std::chrono::nanoseconds submitted{0};
  std::chrono::nanoseconds requested_at{0};  // time of the request that it is queued or runs for
  std::chrono::nanoseconds began{0};
  std::chrono::nanoseconds ended{0};
  std::stop_source stop{std::nostopstate};   // stop source of the current run
  Urgency urgent;                            // true if a caller waits for the current run
  bool is_cancelling = false;                // the current run was canceled
  std::optional<Priority> requeue_priority;  // set if it was requested again before the canceled run ended
  std::vector<Waiter*> waiters;
  std::vector<CompileTask*> coalesced_tasks;  // tasks for the same request, parked until this task completes

  std::string called() const { return unit ? unit->label() : label; }
  const std::string& unit_kind() const { return unit ? unit->kind() : kind; }
  /// Returns the request. The task must have its unit.
  CompileRequest request() const { return {*unit, target, load}; }
};

/// The results of all ready tasks, for lock-free readers.
using ReadyIndex = ConcurrentIndex<const ResolveResult>;
inline IndexKey index_key(const Digest& identity, const Target& target) {
  return {identity, target.architecture, static_cast<std::uint64_t>(target.form)};
}

}  // namespace kiln
