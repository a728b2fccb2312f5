// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <stop_token>
#include <string>

#include <kiln/result.hpp>

#include "base/mutex.hpp"
#include "base/process/process.hpp"

namespace kiln {

/// Runs programs until they exit or reach their time limit.
///
/// A program and its child processes are one process group. nvcc's preprocessor, compiler and assembler end with it in
/// every case.
/// Thread-safe.
class CommandRunner {
 public:
  struct RunResult {
    Process::Exit exit;
    std::string output;  ///< the first 4 MiB of its standard output and error
  };
  /// Runs a program. Returns Code::TimedOut if it was terminated at the limit, and Code::Cancelled after `interrupt` or
  /// a request on `stop`. This function creates the program's standard descriptors; `start.descriptors` are additional
  /// ones.
  Result<RunResult> run(Process::SpawnOptions start, std::chrono::milliseconds timeout,
                        const std::stop_token& stop = {});

  /// Terminates all running programs and starts no more.
  void interrupt();

 private:
  Result<Process> begin(const Process::SpawnOptions& start);
  bool finish(pid_t group);
  void end(pid_t group);

  Mutex mutex_;
  bool interrupted_ KILN_GUARDED_BY(mutex_) = false;
  std::set<pid_t> groups_ KILN_GUARDED_BY(mutex_);  // not reaped yet, so that the ids are not reused
};

}  // namespace kiln
