// SPDX-License-Identifier: Apache-2.0
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
///
/// The stages, and the functions of TaskTable, Engine and Engine::State that change them:
///
///   add ─► Cancelled ── schedule ──► Queued ── take ──► Running ── complete ─┬─ result ──────────────────► Ready
///                 ▲                   │ ▲ ▲                │                 ├─ error ───────────────────► Failed
///                 └──── end, stop ────┘ │ └─ promote       │                 ├─ canceled ────────────────► Cancelled
///                                       │                  │                 └─ canceled, requested again ► Queued
///                                       │                  └─ coalesce_with_running ─► Running, parked
///                                       │                                                │
///                                       └── complete, of the task that it waits for ─────┤
///                      Cancelled ◄───── complete, if the engine stops ───────────────────┘
///
///   Ready  ─┬─ schedule, if it is stale or a caller needs bytes that were dropped ───► Queued
///           ├─ identify, if it is stale and an equal unit was queued ────────────────► Queued
///           ├─ refresh ──────────────────────────────────────────────────────────────► Ready, stale
///           └─ forget ───────────────────────────────────────────────────────────────► Cancelled
///   Failed ─┬─ schedule, if equal inputs need not fail again (no compiler, no disk) ─► Queued
///           └─ retry, refresh, or attach_waiter if the inputs changed ───────────────► Cancelled
///
/// `lookup` completes a task of any stage but Running on the thread of a caller; the task becomes Ready. `identify`
/// also queues a Cancelled task in place of one for an equal unit.
///
/// Properties in addition to the stage:
///   stale      set by `refresh` of a Ready task, whose result is then hidden from readers. The task keeps the result
///              while it is Queued and Running and becomes Ready with it if `still_current`; otherwise the run replaces
///              or, if it fails, drops it.
///   detached   set by `refresh` and `release` of a Running task. Later requests get a new task. `complete` gives the
///              waiters the outcome and removes the task.
///   canceling  set by `end` of a Running task, which asks the run to stop, unless other tasks are parked behind it.
///              If it is requested again before the run ends, `schedule` sets `requeue_priority`.
///   parked     Running, but in `coalesced_tasks` of a task that runs the same request. When that task completes, this
///              one is queued and finds the result in the store; if it is detached and has no waiters, it is removed.
/// `release` removes a task that is not Running, and `identify` one for which a task of an equal unit exists.
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
