// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "engine/task_table.hpp"
#include "engine/thread_pool.hpp"

namespace kiln {

Event make_event(Event::Kind kind, const CompileTask& task);
/// Returns the name of a request or a task for error messages.
std::string describe(const CompileRequest& request);
std::string describe(const CompileTask& task);
/// Return the error without allocating; if memory is exhausted, the message names no unit.
Error cancelled(const CompileRequest& request) noexcept;
Error cancelled(const CompileTask& task) noexcept;

/// The tasks of an engine and the threads that run them. `mutex` guards the mutable state.
struct Engine::State {
  State(ResolverSource& its_source, Options its_options);

  ThreadPool& pool(Priority priority) { return priority == Priority::Foreground ? waited : background; }

  // Schedules the task of a request if needed. Returns true if it was queued, either newly or at a higher priority.
  bool schedule(CompileTask& task, const CompileRequest& request, Priority priority) KILN_REQUIRES(mutex);
  // Marks a running task as urgent because a caller waits for it, and the task that it waits for.
  void raise(CompileTask& task) KILN_REQUIRES(mutex);
  // Returns true if a task has everything that a request needs, regardless of whether its bytes are in memory.
  static bool is_done(const CompileTask& task) { return task.stage == CompileTask::Stage::Ready && !task.is_stale; }
  // Returns true if a task has everything that a get of this request needs.
  static bool serves(const CompileTask& task, const CompileRequest& request);
  // Returns the result if it is ready, otherwise null.
  ResolveResultPtr result_of(const CompileRequest& request);
  // Attaches a waiter to the task of a get and queues the task if it was not scheduled. The task is null if the get is
  // already decided; `waiter` has the outcome then.
  struct AttachResult {
    CompileTask* task = nullptr;
    bool queued = false;
  };
  AttachResult attach_waiter(const CompileRequest& request, Priority priority, const Deadline& deadline,
                             Waiter& waiter);
  void wait(CompileTask& task, const Deadline& deadline, Waiter& waiter);
  // Looks up the result on the caller's thread, unless another thread is already working on it.
  ResolveResultPtr lookup(const CompileRequest& request);
  // Hashes these units, and outside the lock all unhashed units with the same fingerprint, which
  // may be equal.
  template <class What>  // requests, or units for every target
  void hash_same_named(std::span<const What> wanted);
  // Returns the tasks of all units that are equal to these, without duplicates. `hash_same_named` has hashed them.
  template <class What>
  std::vector<CompileTask*> find_equal(std::span<const What> wanted) KILN_REQUIRES(mutex);
  // Everything that a cancel has ended. It is reported outside the lock, because listeners may be slow.
  struct Ended {
    std::vector<std::stop_source> runs;  // with capacity for one more
    std::vector<Event> events;
  };
  // Removes a task from its queue or stops its run, and wakes the threads that wait for it.
  void end(CompileTask& task, Ended& ended) noexcept KILN_REQUIRES(mutex);
  void emit_event(Ended& ended) const;
  // Gives all waiting threads the same outcome, or an out-of-memory error if it cannot be copied.
  static void wake(CompileTask& task, const Result<ResolveResultPtr>& outcome) noexcept;

  // The thread that runs a task: a thread of a pool, which is notified of waits for other processes, or the thread of
  // a caller, which waits for them until its own deadline.
  struct Runner {
    WaitObserver* waits = nullptr;
    std::optional<Deadline> deadline = {};
  };
  // Runs one task on the calling thread. Returns false if there was none. Every task completes, even when memory runs
  // out, so that no thread waits forever.
  bool work(Priority priority, const Runner& runner) noexcept;
  // Returns the place at which this host starts with queued tasks. Opens the configuration if there is a background
  // task.
  FleetPlace fleet_place(Priority priority) const noexcept;
  // Hashes the unit of a task that was dequeued, so that no thread hashes it under the lock. Returns null if another
  // task for an equal unit continues instead.
  CompileTask* hash_and_identify(CompileTask& task, Priority priority) noexcept;
  void run_task(CompileTask& task, const Runner& runner) noexcept;
  // Executes a task and returns its result; `recipe` receives the inputs used so far. Returns nothing if another task
  // is already running the same request.
  std::optional<Result<ResolveResultPtr>> execute(CompileTask& task, const Runner& runner,
                                                  std::optional<Recipe>& recipe);
  // Starts the compile of a task before its compiler is identified, if no other task runs or waits. Several units gain
  // more from precompiled headers, which need the compiler's digest. Returns null otherwise.
  std::unique_ptr<EarlyCompile> start_early(const CompileTask& task, const CompileRequest& request,
                                            const RequestContext& context);
  // Returns a result that a refresh marked for checking if it is still current, otherwise null.
  ResolveResultPtr still_current(const CompileRequest& request, ResolveResultPtr stale,
                                 const RequestContext& context) const;
  // Returns a running task that was not asked to stop. One at a time, because a list needs memory.
  std::optional<std::stop_source> next_to_stop() noexcept;
  bool is_stopping() const {
    const MutexLock lock(mutex);
    return stopping;
  }
  // Returns true if another task is running the same request. This task is then parked until that one completes.
  // Otherwise sets the number of similar tasks in the context of the run.
  bool coalesce_with_running(CompileTask& task, const RequestKey& request, RequestContext& context);
  // The result of a task. It is built outside the lock and before anything changes, because it needs memory.
  struct Completion {
    ResolveResultPtr result;
    Error error;  // set if there is no result
    std::unique_ptr<const Recipe> recipe;
  };
  static Completion make_completion(Result<ResolveResultPtr> result, const Recipe* recipe) noexcept;
  void complete(CompileTask& task, Completion completion) noexcept;
  // Returns true if the task was queued again for callers that requested it after it was canceled.
  bool apply_completion(CompileTask& task, Completion completion) noexcept KILN_REQUIRES(mutex);
  // Returns true if a failed compile would fail again. It reads files, so it must not run under the lock.
  bool would_fail_again(const Recipe* recipe) const;
  void emit_wait(const CompileRequest& request, const Result<ResolveResultPtr>& outcome, std::chrono::nanoseconds start,
                 Caller caller) const noexcept;

  ResolverSource& source;
  const Options options;
  mutable Mutex mutex;
  ReadyIndex index;  // readable by any thread; written by the task table
  TaskTable table KILN_GUARDED_BY(mutex);
  std::unordered_map<RequestKey, CompileTask*> in_flight KILN_GUARDED_BY(mutex);
  bool stopping KILN_GUARDED_BY(mutex) = false;
  // Declared last, so that their threads end before the members that they use are destroyed.
  ThreadPool background;
  ThreadPool waited;
};

}  // namespace kiln
