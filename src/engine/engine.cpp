// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/catch_to_error.hpp"
#include "base/process/system_info.hpp"
#include "core/unit_access.hpp"
#include "engine/engine_state.hpp"

namespace kiln {
namespace {

using Stage = CompileTask::Stage;

// A caller with less time than this does not look up the result itself, because a lookup reads files.
constexpr std::chrono::milliseconds kMinTimeoutForLookup{10};

Event dropped(const CompileRequest& request) {
  Event event = make_event(Event::Kind::Cancelled, request.unit, request.target);
  event.message = "the request queue is full; the unit will be compiled when it is first used";
  return event;
}

const Unit& unit_of(const CompileRequest& request) { return request.unit; }
const Unit& unit_of(const Unit& unit) { return unit; }
const Target* target_of(const CompileRequest& request) { return &request.target; }
const Target* target_of(const Unit& /*unit*/) { return nullptr; }

template <class Named>
Error cancelled_by_name(const Named& which) noexcept {
  Error error{Code::Cancelled, "canceled", {}};
  ignore_failures([&] { error.message = describe(which) + " was canceled"; });
  return error;
}

}  // namespace

Event make_event(Event::Kind kind, const CompileTask& task) {
  return make_event(kind, *task.unit, task.target, task.number);
}

std::string describe(const CompileRequest& request) {
  return "unit '" + request.unit.label() + "' for " + request.target.name();
}
std::string describe(const CompileTask& task) { return "unit '" + task.called() + "' for " + task.target.name(); }

Error cancelled(const CompileRequest& request) noexcept { return cancelled_by_name(request); }
Error cancelled(const CompileTask& task) noexcept { return cancelled_by_name(task); }

template <class What>
void Engine::State::hash_same_named(std::span<const What> wanted) {
  for (const What& one : wanted) (void)UnitAccess::identity(unit_of(one));
  std::vector<Unit> units;
  {
    const MutexLock lock(mutex);
    for (const What& one : wanted) table.unhashed_units(unit_of(one), units);
  }
  for (const Unit& unit : units) (void)UnitAccess::identity(unit);
}

template <class What>
std::vector<CompileTask*> Engine::State::find_equal(std::span<const What> wanted) {
  std::vector<CompileTask*> found;
  for (const What& one : wanted) table.find_equal(unit_of(one), target_of(one), found);
  std::sort(found.begin(), found.end(),
            [](const CompileTask* a, const CompileTask* b) { return a->number < b->number; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void Engine::State::end(CompileTask& task, Ended& ended) noexcept {
  if (task.stage != Stage::Queued && task.stage != Stage::Running) return;
  if (task.stage == Stage::Queued) {
    table.set_cancelled(task);
    if (options.emitter) ignore_failures([&] { ended.events.push_back(make_event(Event::Kind::Cancelled, task)); });
  }
  // A task that other tasks wait for continues.
  if (task.stage == Stage::Running && task.coalesced_tasks.empty()) {
    task.is_cancelling = true;
    task.requeue_priority.reset();
    ended.runs.push_back(task.stop);
  }
  wake(task, cancelled(task));
}

void Engine::State::emit_event(Ended& ended) const {
  for (std::stop_source& run : ended.runs) run.request_stop();
  for (const Event& event : ended.events) options.emitter.emit(event);
}

FleetPlace Engine::State::fleet_place(Priority priority) const noexcept {
  FleetPlace place;
  {
    const MutexLock lock(mutex);
    if (priority != Priority::Background || stopping || table.queued(priority).empty()) return place;
  }
  ignore_failures([&] { place = source.resolver_for_task().fleet_place(); });
  return place;
}

std::optional<std::stop_source> Engine::State::next_to_stop() noexcept {
  const MutexLock lock(mutex);
  for (const CompileTask* task : table.running()) {
    if (task->stop.stop_possible() && !task->stop.stop_requested()) return task->stop;
  }
  return std::nullopt;
}

void Engine::State::emit_wait(const CompileRequest& request, const Result<ResolveResultPtr>& outcome,
                              std::chrono::nanoseconds start, Caller caller) const noexcept try {
  if (!options.emitter || (outcome && (*outcome)->origin != Origin::Compiled)) return;
  if (!outcome && outcome.error().code != Code::CompileFailed) return;
  Event event = make_event(Event::Kind::BlockingCompile, request.unit, request.target, outcome ? (*outcome)->flow : 0);
  event.ms = milliseconds_since(*options.clock, start);
  event.message = caller.text() + " on thread " + thread_name() +
                  (outcome ? " waited for its compile" : " waited for a compile that failed") + "; request it earlier";
  options.emitter.emit(event);
} catch (...) {
  // The caller has its result; a lost event is acceptable.
}

Engine::Engine(ResolverSource& source, Options options) : state_(std::make_unique<State>(source, std::move(options))) {}

Engine::~Engine() { stop(); }

void Engine::request(std::span<const CompileRequest> requests, Priority priority) {
  State& state = *state_;
  std::vector<Event> events;
  std::size_t queued = 0;
  {
    const MutexLock lock(state.mutex);
    if (state.stopping) return;
    const auto now = state.options.clock->steady();
    try {
      for (const CompileRequest& request : requests) {
        CompileTask* task = state.table.find(request);
        if (state.table.full() && (task == nullptr || task->stage == Stage::Cancelled)) {
          if (state.options.emitter) events.push_back(dropped(request));
          continue;
        }
        if (task == nullptr) task = &state.table.add(request, now);
        if (State::is_done(*task) || !state.schedule(*task, request, priority)) continue;
        ++queued;
        if (state.options.emitter) events.push_back(make_event(Event::Kind::Requested, *task));
      }
    } catch (const std::bad_alloc&) {
      // Requests that were not recorded are compiled when a caller gets them.
    }
  }
  // Emitted before a thread can start, so that no event of a task precedes its request.
  ignore_failures([&] {
    for (const Event& event : events) state.options.emitter.emit(event);
  });
  if (queued > 0) (void)state.pool(priority).submit(queued);
}

const ResolveResult* Engine::ready(const CompileRequest& request) const {
  return state_->index.find(index_key(UnitAccess::identity(request.unit), request.target));
}

Result<ResolveResultPtr> Engine::get(const CompileRequest& request, const Deadline& deadline, Caller caller) {
  State& state = *state_;
  (void)UnitAccess::identity(request.unit);  // hashed outside the lock
  if (ResolveResultPtr result = state.result_of(request)) return result;
  const auto start = state.options.clock->steady();
  const auto timeout = deadline.remaining();
  if (timeout >= kMinTimeoutForLookup) {
    if (ResolveResultPtr result = state.lookup(request)) return result;
  }
  const bool waits = timeout > std::chrono::nanoseconds(0) || deadline.polled_since();
  const Priority priority = waits ? Priority::Foreground : Priority::Background;
  Waiter waiter;
  const State::AttachResult joined = state.attach_waiter(request, priority, deadline, waiter);
  if (joined.task != nullptr) {
    // If no thread can be started, the unit is compiled on this thread, after the tasks that other callers have waited
    // for longer. The limit cannot be met then; this is the cost without kiln. A caller that does not wait does not
    // compile.
    if (joined.queued && !state.pool(priority).submit(1) && waits) {
      while (state.work(priority, {nullptr, deadline})) {
      }
    }
    state.wait(*joined.task, deadline, waiter);  // not accessed once the waiter has its outcome
    if (waits) state.emit_wait(request, *waiter.outcome, start, caller);
  }
  return *std::move(waiter.outcome);
}

void Engine::cancel(std::span<const CompileRequest> requests) {
  State::Ended ended;
  state_->hash_same_named(requests);
  {
    const MutexLock lock(state_->mutex);
    const std::vector<CompileTask*> tasks = state_->find_equal(requests);
    ended.runs.reserve(tasks.size());  // reserved first, so that the loop cannot fail halfway
    for (CompileTask* task : tasks) state_->end(*task, ended);
  }
  state_->emit_event(ended);
}

std::vector<ArtifactKey> Engine::release(std::span<const Unit> units) {
  State::Ended ended;
  std::vector<ArtifactKey> keys;
  state_->hash_same_named(units);
  {
    const MutexLock lock(state_->mutex);
    const std::vector<CompileTask*> tasks = state_->find_equal(units);
    ended.runs.reserve(tasks.size());
    keys.reserve(tasks.size());
    for (CompileTask* task : tasks) {
      if (task->result != nullptr) keys.push_back(task->result->key);
      state_->end(*task, ended);
      state_->table.release(*task);
    }
  }
  state_->emit_event(ended);
  return keys;
}

void Engine::refresh(std::span<const Unit> units) {
  state_->hash_same_named(units);
  const MutexLock lock(state_->mutex);
  const auto now = state_->options.clock->steady();
  for (CompileTask* task : state_->find_equal(units)) {
    ++task->refreshes;
    switch (task->stage) {
      case Stage::Ready:
        task->is_stale = true;
        state_->table.hide_result(*task);
        break;
      case Stage::Running: state_->table.detach(*task); break;
      case Stage::Queued: task->requested_at = now; break;  // file checks made before this time are not reused
      case Stage::Failed: state_->table.set_cancelled(*task); break;
      case Stage::Cancelled: break;
    }
  }
}

void Engine::retry(std::span<const CompileRequest> requests) {
  for (const CompileRequest& request : requests)
    (void)UnitAccess::identity(request.unit);  // hashed outside the lock; indexes failed tasks
  const MutexLock lock(state_->mutex);
  for (const CompileRequest& request : requests) {
    CompileTask* task = state_->table.find(request);
    if (task != nullptr && task->stage == Stage::Failed) state_->table.set_cancelled(*task);
  }
}

void Engine::forget(const CompileRequest& request) {
  (void)UnitAccess::identity(request.unit);
  const MutexLock lock(state_->mutex);
  CompileTask* task = state_->table.find(request);
  if (task == nullptr || task->stage != Stage::Ready) return;
  state_->table.hide_result(*task);
  task->result.reset();
  task->is_stale = false;
  state_->table.set_cancelled(*task);
}

void Engine::drop_bytes(const CompileRequest& request) {
  (void)UnitAccess::identity(request.unit);
  const MutexLock lock(state_->mutex);
  CompileTask* task = state_->table.find(request);
  if (task == nullptr || task->stage != Stage::Ready || task->is_stale) return;
  if (!task->result->is_stored || task->result->is_slim) return;
  state_->table.set_result(*task, std::make_shared<const ResolveResult>(task->result->slim()));
}

SessionStatus Engine::status() const {
  const MutexLock lock(state_->mutex);
  return status_of(state_->table, state_->options.clock->steady());
}

StatusSnapshot Engine::status_snapshot(std::size_t maximum) const {
  const MutexLock lock(state_->mutex);
  return take_snapshot(state_->table, state_->options.clock->steady(), maximum);
}

void Engine::stop() {
  State& state = *state_;
  {
    const MutexLock lock(state.mutex);
    state.stopping = true;
    for (const auto& [number, task] : state.table.tasks()) {
      if (task->stage == Stage::Queued) state.table.set_cancelled(*task);
      if (!task->waiters.empty()) State::wake(*task, cancelled(*task));
    }
  }
  while (std::optional<std::stop_source> run = state.next_to_stop()) run->request_stop();
  try {
    if (Resolver* resolver = state.source.opened_resolver()) resolver->interrupt();
  } catch (...) {
    // The running tasks are waited for instead.
  }
  // If a compiler ends the process on a pool thread, that thread must not wait for itself.
  if (ThreadPool::is_pool_thread()) return;
  state.background.stop();
  state.waited.stop();
}

}  // namespace kiln
