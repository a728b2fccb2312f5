#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/files.hpp"

namespace kiln {

/// A child process, by default in a session of its own, so that a Ctrl-C meant for the host program does not reach it.
/// Owned by one thread at a time; destroying a child that still runs kills it.
class Process {
 public:
  struct Start {
    std::vector<std::string> arguments;    ///< the first is the program's path
    std::vector<std::string> environment;  ///< all of it, as NAME=value
    /// Descriptors that the child gets: the parent's, and the number it has in the child. Besides these it inherits
    /// 0, 1 and 2 and no other.
    std::vector<std::pair<int, int>> descriptors;
    /// Whether what a terminal sends (SIGINT, SIGQUIT, SIGHUP, SIGTSTP) stays blocked in the child: sent to the host's
    /// group, it may reach the child before that has a session of its own.
    bool deaf_to_terminal = false;
    std::string folder;  ///< its working directory; empty: ours
    /// Else it is in ours, and what a terminal sends is for both.
    bool own_session = true;
  };
  static Result<Process> spawn(const Start& start);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  struct Exit {
    int code = 0;    ///< what it returned
    int signal = 0;  ///< or the signal that ended it
    /// The most memory that it had at once. Zero where that is not known: the kernel counts what the process that
    /// started it had by then as its own, so that what is no more than that says nothing.
    std::uint64_t peak_bytes = 0;
    bool clean() const { return code == 0 && signal == 0; }
  };
  /// How it ended; nothing when it still runs after `limit`. Somebody else having waited for it counts as an end.
  std::optional<Exit> wait(std::chrono::milliseconds limit);
  /// Any thread.
  void kill();
  pid_t id() const { return pid_; }
  /// Readable when it has ended, where the kernel has such; else -1.
  int descriptor() const { return pidfd_.get(); }

 private:
  Process(pid_t pid, Fd pidfd, std::uint64_t inherited_peak);
  pid_t pid_ = -1;
  Fd pidfd_;
  std::uint64_t inherited_peak_ = 0;
  std::optional<Exit> exit_;
};

/// This process's environment as `Start` wants it.
std::vector<std::string> current_environment();

}  // namespace kiln
