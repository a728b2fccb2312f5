// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "backends/compiler.hpp"
#include "base/files/lock_file.hpp"
#include "base/mutex.hpp"
#include "worker/worker_pool.hpp"
#include "worker/worker_protocol.hpp"

namespace kiln {

/// A job that a worker runs before the digest of its compiler is known, on a thread of its own. Its result is that of
/// the unit only if `files`, the state of the compiler's files before the worker was requested, is their state after
/// the job, too. One process of a host has an early job at a time: on a host without remembered digests, many processes
/// can start together, and one of them compiles. Not thread-safe.
class EarlyJob final : public EarlyCompile {
 public:
  struct Options {
    WorkerPool& pool;
    WorkerPool::WorkerRequest worker;
    std::chrono::milliseconds timeout;
    std::stop_token stop;
  };
  /// Starts a job. Returns null if another one runs on this host, or if no thread can be started. The recipe of the job
  /// has no digest of its compiler.
  static std::unique_ptr<EarlyJob> start(WorkerJob job, const Digest& files, Options options);
  /// Kills the worker if its result was not taken.
  ~EarlyJob() override;
  EarlyJob(const EarlyJob&) = delete;
  EarlyJob& operator=(const EarlyJob&) = delete;

  /// Returns true if the job is that of this recipe, whatever the digest of its compiler.
  bool is_for(const Recipe& recipe) const;
  const Digest& files() const { return files_; }
  const SandboxPlan& sandbox() const { return job_.sandbox; }

  /// A worker and its reply.
  struct Done {
    std::optional<WorkerPool::Handle> lease;  ///< empty if the result was not taken soon after the job
    Worker::Exchange talk;
  };
  /// Waits for the end of the job. Returns nothing if there was no worker, and at the second call.
  std::optional<Done> take();

 private:
  EarlyJob(WorkerJob job, const Digest& files, Options options, LockFile::ScopedLock turn);
  void run();
  /// Ends the thread as soon as its job has ended.
  void join();
  /// Keeps the worker for the caller of `take`, but not for long: the caller may be waiting for another process that
  /// needs the worker's slot.
  void hold_worker();

  const WorkerJob job_;
  const Digest files_;
  const Options options_;
  const LockFile::ScopedLock turn_;  // among the processes of this host
  std::stop_source stop_;
  std::optional<std::stop_callback<std::function<void()>>> outer_;  // forwards the stop of the request
  std::optional<Done> done_;                                        // written by the thread, read after it has ended
  Mutex mutex_;
  Condition wanted_;
  bool is_wanted_ KILN_GUARDED_BY(mutex_) = false;  // `take` was called, or the object ends
  std::thread thread_;
};

}  // namespace kiln
