// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/files/files.hpp"

namespace kiln {

/// A child process, by default in its own session, so that a Ctrl-C for the host program does not reach it. The
/// destructor kills a running child. Not thread-safe, except for `kill`.
class Process {
 public:
  struct SpawnOptions {
    std::vector<std::string> arguments;    ///< the first is the path of the program
    std::vector<std::string> environment;  ///< the whole environment, as NAME=value
    /// Descriptors for the child, as pairs of the parent's number and the child's number. The child also inherits 0, 1
    /// and 2, and no others.
    std::vector<std::pair<int, int>> descriptors;
    /// True if terminal signals (SIGINT, SIGQUIT, SIGHUP, SIGTSTP) stay blocked in the child. A signal to the host's
    /// process group can reach the child before its own session starts.
    bool block_terminal_signals = false;
    std::string working_directory;  ///< working directory; empty means the parent's
    /// False keeps the child in the parent's session, so that terminal signals reach both.
    bool new_session = true;
  };
  static Result<Process> spawn(const SpawnOptions& start);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  struct Exit {
    int code = 0;    ///< exit code
    int signal = 0;  ///< signal that ended the process, or 0
    /// Peak memory in bytes; 0 if unknown. The kernel includes the peak of the parent at the start, so a value that is
    /// not larger says nothing about the child.
    std::uint64_t peak_bytes = 0;
    bool succeeded() const { return code == 0 && signal == 0; }
  };
  /// Waits for the end of the process. Returns nothing if it still runs after `timeout`. A child that other code has
  /// reaped counts as ended.
  std::optional<Exit> wait(std::chrono::milliseconds timeout);
  /// Kills the process with SIGKILL. Thread-safe.
  void kill();
  pid_t id() const { return pid_; }
  /// Returns a descriptor that becomes readable when the process ends, or -1 if the kernel does not support it.
  int pidfd() const { return pidfd_.get(); }

 private:
  Process(pid_t pid, Fd pidfd, std::uint64_t inherited_peak);
  pid_t pid_ = -1;
  Fd pidfd_;
  std::uint64_t inherited_peak_ = 0;
  std::optional<Exit> exit_;
};

/// Returns the environment of this process in the form that `SpawnOptions` needs.
std::vector<std::string> current_environment();

/// Returns pointers to the texts and a null pointer, as exec takes them. The texts must outlive them.
std::vector<char*> argument_pointers(const std::vector<std::string>& texts);

}  // namespace kiln
