#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <stop_token>
#include <string>

#include <kiln/result.hpp>

#include "base/mutex.hpp"
#include "base/process.hpp"

namespace kiln {

/// Runs programs to their end, or to their limit. Any thread.
///
/// A program and all that it has started are one process group: nvcc's preprocessor, compiler and assembler end with
/// it, whichever way it ends.
class CommandRunner {
 public:
  struct Ended {
    Process::Exit exit;
    std::string output;  ///< what it wrote to its standard output and error, the first 4 MiB of it
  };
  /// Code::TimedOut when it had to be ended at the limit, Code::Cancelled after `interrupt` or when `stop` was
  /// requested. The program's standard descriptors are made here; `start.descriptors` are further ones.
  Result<Ended> run(Process::Start start, std::chrono::milliseconds limit, const std::stop_token& stop = {});

  /// Ends all that run, and begins no more.
  void interrupt();

 private:
  Result<Process> begin(const Process::Start& start);
  bool finish(pid_t group);
  void end(pid_t group);

  Mutex mutex_;
  bool interrupted_ KILN_GUARDED_BY(mutex_) = false;
  std::set<pid_t> groups_ KILN_GUARDED_BY(mutex_);  // not waited for yet, so that their numbers are still theirs
};

}  // namespace kiln
