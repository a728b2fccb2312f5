// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/process/process.hpp"
#include "worker/worker_files.hpp"
#include "worker/worker_protocol.hpp"

namespace kiln {

/// Returns the path of kiln-worker: the configured path, or next to the program or library that contains kiln, or in
/// its libexec directory. Returns an empty string if it is not found.
std::string find_worker(const std::string& configured);

/// Returns text about the memory use of a worker, in megabytes. The parameters are bytes.
std::string format_memory_usage(std::uint64_t used, std::uint64_t limit);

/// A directory that the destructor removes with all of its contents. An empty path means none.
class RemovedDirectory {
 public:
  explicit RemovedDirectory(std::string path) : path_(std::move(path)) {}
  RemovedDirectory(const RemovedDirectory&) = delete;
  RemovedDirectory& operator=(const RemovedDirectory&) = delete;
  ~RemovedDirectory();

 private:
  const std::string path_;
};

/// A kiln-worker process and the channel to it. Not thread-safe, except `kill`.
class Worker {
 public:
  struct Start {
    std::string program;
    std::vector<std::string> environment;  ///< the complete environment
    std::uint64_t memory_limit = 0;        ///< limit of its allocations, in bytes
    bool own_temporary_directory = false;  ///< creates a directory as its TMPDIR and removes it with the worker
  };
  /// Starts a worker. It ends when the calling thread ends.
  static Result<std::unique_ptr<Worker>> start(const Start& start);

  /// The result of an exchange with a worker.
  struct Exchange {
    enum class Outcome : std::uint8_t { Answered, Died, TimedOut, ProtocolError, Stopped };
    Outcome end = Outcome::Died;
    Frame answer = {};        ///< for Answered
    std::string description;  ///< for Died and Garbled: description
    /// For Died: true if another process probably killed it, by SIGKILL while it used little memory. A compiler does
    /// not cause that.
    bool killed_externally = false;
    /// Inputs that the sandbox denied to the compiler. The result is then not that of the unit.
    std::vector<std::string> rejected{};
  };
  /// Sends a job and waits for the reply. While waiting, it opens the files that the worker requests and is allowed to
  /// read (`WorkerFiles`). For any result but Answered, the worker is killed and cannot be used again.
  Exchange request(const WorkerJob& job, std::chrono::milliseconds timeout, const std::stop_token& stop);

  /// Kills the worker within milliseconds. Thread-safe.
  void kill() { process_.kill(); }
  /// Returns true if the worker has exited by itself, which happens only after an error.
  bool has_exited() { return process_.wait(std::chrono::milliseconds(0)).has_value(); }
  /// Returns a descriptor that is readable when the worker has exited.
  int exit_fd() const { return process_.pidfd(); }
  pid_t id() const { return process_.id(); }

 private:
  Worker(Process process, Fd channel, const Start& start, std::string temporary_directory);
  // Returns the next frame that is not a request for a file.
  Result<std::optional<Frame>> converse(WorkerFiles& files, std::chrono::nanoseconds deadline);
  Exchange after_death(std::chrono::milliseconds timeout);

  const RemovedDirectory temporary_directory_;  // before the process, so that it is removed after the process ends
  Process process_;
  Fd channel_;
  const std::uint64_t memory_limit_;
};

}  // namespace kiln
