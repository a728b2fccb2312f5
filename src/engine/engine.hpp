#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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

/// A compile request: a unit for a target. Cheap to create and to copy, because nothing is hashed.
struct CompileRequest {
  Unit unit;
  Target target;
  /// True if the result is loaded on a device of this process; a result without bytes is then sufficient. If two
  /// requests share one task, the first one decides.
  bool load_on_device = false;
};

/// A shared result. It is immutable and stays valid while the caller holds it.
using ResolveResultPtr = std::shared_ptr<const ResolveResult>;

/// The priority of a task: `Foreground` if a caller waits for it.
enum class Priority : unsigned char { Background, Foreground };

/// Resolves compile requests in the background, with one task per request, a bounded queue and a thread pool that
/// starts on demand. It uses no device. The destructor stops the work as `stop` does. Thread-safe.
class Engine {
 public:
  /// The functions that a task calls. They run on the engine's threads, several at once.
  struct Callbacks {
    /// Returns a prebuilt result that needs no recipe, because it does not depend on a compiler of this machine: the
    /// result of a bundle. Called before the others. Null means none.
    std::function<Result<std::optional<ResolveResult>>(const CompileRequest&, std::uint64_t flow)> find_prebuilt;
    /// Returns the current recipe of a request.
    std::function<Result<Recipe>(const CompileRequest&)> recipe;
    /// Returns the result of a request, from the tiers or from a compile.
    std::function<Result<ResolveResult>(const CompileRequest&, const Recipe&)> resolve;
    /// Returns a result that needs no compile. `get` calls it on the caller's thread before it waits for a thread of
    /// the engine, which saves a hit two thread switches. Null means none.
    std::function<Result<std::optional<ResolveResult>>(const CompileRequest&, std::uint64_t flow)> lookup;
    /// Returns true if the inputs of a failed compile have changed. `get` calls it on the caller's thread. Null means
    /// no.
    std::function<bool(const Recipe&)> inputs_changed;
    /// Returns true if a result is still current: the recipe and every input file are unchanged. Called after
    /// `refresh`, on the thread that otherwise resolves the request again. Null means no.
    std::function<bool(const CompileRequest&, const ResolveResult&)> is_current;
    /// Makes running `resolve` calls return soon, if that is possible. Called by `stop`. Null means not possible.
    std::function<void()> interrupt;
    const Clock* clock = &system_clock();
    EventEmitter emitter;
  };
  struct Options {
    unsigned max_threads = 0;  ///< threads per priority; 0 means determined by cores and free memory
    std::size_t max_queued = 100'000;
  };
  explicit Engine(Callbacks params) : Engine(std::move(params), Options{}) {}
  Engine(Callbacks params, Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Declares units that will be needed. Does not wait, hash sources or open files. A request that is already known is
  /// not queued again. If the queue is full, the request is dropped with an event; a later `get` still compiles it.
  void request(std::span<const CompileRequest> requests, Priority priority = Priority::Background);

  /// Returns the result: at once if it is ready, otherwise after joining or starting its task, within `timeout`. With
  /// `Code::TimedOut` the task continues. `Code::Cancelled` means that the task was canceled or the engine stopped
  /// during the wait. A failure is cached and returned at once until an input changes or `retry` is called. A request
  /// that is not for loading gets a result with its bytes.
  Result<ResolveResultPtr> get(const CompileRequest& request, std::chrono::nanoseconds timeout,
                               Caller caller = Caller::here());
  /// Returns the result if it is ready. Returns null otherwise, and sometimes while other threads modify the index. It
  /// takes no lock and no reference: the pointer may be dereferenced only if no other thread forgets, refreshes or
  /// releases the result.
  const ResolveResult* ready(const CompileRequest& request) const;

  /// Cancels requests. Queued tasks do not start, and waiting callers get `Code::Cancelled`. A running task is notified
  /// by the `stop` token of its recipe: a compile in a worker process is killed, any other continues and its result is
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
  /// It waits for compiles that run in this process; `interrupt` ends those that can be ended.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln
