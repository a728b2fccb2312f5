// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files/files.hpp"
#include "base/mutex.hpp"
#include "engine/status_format.hpp"
#include "engine/thread_pool.hpp"

namespace kiln {

/// Writes a file from which other processes read the progress of this one. The file is written shortly after background
/// work has begun, five times a second while units are pending and once more when none is, and is removed at the end. A
/// process whose requests were all answered at once writes nothing. Thread-safe.
class StatusWriter {
 public:
  struct Params {
    /// Returns the progress. Called on the status thread.
    std::function<StatusSnapshot(std::size_t maximum)> snapshot;
    /// Called once, if the directory cannot be used.
    std::function<void(const Error&)> warn;
    const Clock* clock = &system_clock();
  };
  explicit StatusWriter(Params params);
  ~StatusWriter();
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

  /// Reports that work has begun. Called by the threads that do it; costs one load if this is already known. `setting`
  /// is the value of `status.dir`.
  void on_work_started(const std::string& setting);
  /// Stops writing and removes the file.
  void stop();

 private:
  void work();
  bool wait(std::chrono::nanoseconds interval);
  Status prepare() KILN_REQUIRES(mutex_);
  Status publish(StatusSnapshot snapshot);

  const Params params_;
  std::atomic<bool> is_active_{false};  // there is something to write, or nothing will ever be written
  Mutex mutex_;
  Condition stopping_;
  bool stopped_ KILN_GUARDED_BY(mutex_) = false;
  std::string path_ KILN_GUARDED_BY(mutex_);
  std::optional<Fd> directory_ KILN_GUARDED_BY(mutex_);
  ProcessStatus status_ KILN_GUARDED_BY(mutex_);
  const std::string name_;  // name of the file
  ThreadPool pool_;         // last, so that its thread ends before the members that it uses
};

}  // namespace kiln
