// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/clock.hpp"
#include "base/process/per_process.hpp"
#include "remote/fleet_policy.hpp"

namespace kiln {

/// A background queue that runs tasks of a session on one thread: uploads, lease releases after them, and probes of
/// failed servers. Tasks run in FIFO order and must not throw. The thread starts with the first task. A child of fork
/// starts with an empty queue. Thread-safe.
class BackgroundQueue {
 public:
  explicit BackgroundQueue(const FleetPolicy& policy = {}, const Clock& clock = system_clock());
  /// Calls `stop`.
  ~BackgroundQueue();
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  /// Queues a task. Returns false and drops the task if the queue has too many tasks or bytes.
  bool try_enqueue(std::uint64_t bytes, std::function<void()> task);
  /// Queues a task that is never dropped and counts no bytes, for releases that other hosts wait for. The task runs
  /// after all tasks that were queued before it.
  void enqueue(std::function<void()> task);
  /// Schedules a task for a time of the clock's steady time. At that time it runs before all queued tasks: uploads to
  /// one server must not delay the recovery of another.
  void enqueue_at(std::chrono::nanoseconds when, std::function<void()> task);

  /// Waits until all queued tasks are done, at most `timeout`. Returns false if tasks remain. Does not wait for tasks
  /// of `enqueue_at`.
  bool drain(std::chrono::nanoseconds timeout);
  /// Waits for the queued tasks at most the policy's `drain_timeout`, drops the rest and ends the thread. `is_stopping`
  /// then asks a running task to end, and this call waits for it. Tasks that are queued later are dropped. Tasks must
  /// not call this function.
  void stop();
  /// Returns whether a running task should end now.
  bool is_stopping() const;

 private:
  class State;
  struct ThreadOwner;
  State& state() const;

  const FleetPolicy policy_;
  const Clock& clock_;
  mutable PerProcess<ThreadOwner> hold_;
};

}  // namespace kiln
