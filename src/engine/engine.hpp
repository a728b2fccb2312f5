// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <kiln/kernel.hpp>
#include <kiln/result.hpp>
#include <kiln/status.hpp>

#include "base/clock.hpp"
#include "engine/resolver.hpp"
#include "engine/status_snapshot.hpp"
#include "events/event_emitter.hpp"

namespace kiln {

/// A shared result. It is immutable and stays valid while the caller holds it.
using ResolveResultPtr = std::shared_ptr<const ResolveResult>;

/// The priority of a task: `Foreground` if a caller waits for it.
enum class Priority : unsigned char { Background, Foreground };

/// Resolves compile requests in the background, with one task per request, a bounded queue and a thread pool that
/// starts on demand. It uses no device. The destructor stops the work as `stop` does. Thread-safe.
class Engine {
 public:
  struct Options {
    unsigned max_threads = 0;  ///< threads per priority; 0 means determined by cores and free memory
    std::size_t max_queued = 100'000;
    const Clock* clock = &system_clock();
    EventEmitter emitter = {};
  };
  /// The tasks use the resolver of `source`, several at once. `source` must outlive the engine.
  Engine(ResolverSource& source, Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Declares units that will be needed. Does not wait, hash sources or open files. A request that is already known is
  /// not queued again. If the queue is full, the request is dropped with an event; a later `get` still compiles it.
  void request(std::span<const CompileRequest> requests, Priority priority = Priority::Background);

  /// Returns the result: at once if it is ready, otherwise after joining or starting its task, until the deadline. With
  /// `Code::TimedOut` the task continues; no task fails with that code. `Code::Cancelled` means that the task was
  /// canceled or the engine stopped during the wait. A failure is cached and returned at once until an input changes or
  /// `retry` is called. A request that is not for loading gets a result with its bytes. A failure since
  /// `deadline.polled_since()` is always returned at once: it is the outcome that the caller polls for.
  Result<ResolveResultPtr> get(const CompileRequest& request, const Deadline& deadline, Caller caller = Caller::here());
  /// Returns the result if it is ready. Returns null otherwise, and sometimes while other threads modify the index. It
  /// takes no lock and no reference: the pointer may be dereferenced only if no other thread forgets, refreshes or
  /// releases the result.
  const ResolveResult* ready(const CompileRequest& request) const;

  /// Cancels requests. Queued tasks do not start, and waiting callers get `Code::Cancelled`. A running task is notified
  /// by the `stop` token of its context: a compile in a worker process is killed, any other continues and its result is
  /// kept. A later request or get schedules it again.
  void cancel(std::span<const CompileRequest> requests);
  /// Clears cached failures, so that the next request or get tries again.
  void retry(std::span<const CompileRequest> requests);
  /// Discards a result that turned out to be unusable. The next request or get schedules it again.
  void forget(const CompileRequest& request);

  /// Drops the parts of a result that can be fetched again, and the source of the unit, because the result is loaded.
  void drop_bytes(const CompileRequest& request);
  /// Marks the inputs of these units as possibly changed, for every target. The next request or get checks an existing
  /// result and resolves the request again if the result is outdated. A running task continues for the callers that
  /// already wait for it; later requests get a new task. A queued task reads its inputs when it starts. A cached
  /// failure is cleared.
  void refresh(std::span<const Unit> units);
  /// Cancels all requests of these units and removes their results, their sources and the requests themselves. Returns
  /// the keys of the results that were ready.
  std::vector<ArtifactKey> release(std::span<const Unit> units);

  /// Returns the state of all requests at one point in time, without those that were released.
  SessionStatus status() const;
  /// Returns the same for at most `maximum` requests, for callers that poll.
  StatusSnapshot status_snapshot(std::size_t maximum) const;

  /// Rejects further requests, cancels queued tasks, wakes all waiting callers, and returns when nothing runs any more.
  /// It waits for compiles that run in this process; `Resolver::interrupt` ends those that can be ended.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln
