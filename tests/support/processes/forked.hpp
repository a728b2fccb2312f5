// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "support/processes/hang_timeout.hpp"

namespace kiln::test {

/// A forked child that runs `body` and exits without the parent's exit handlers. Parent and child communicate over a
/// pipe in each direction; `body` gets a Forked::Side. The destructor kills the child if it still runs.
class Forked {
 public:
  struct Side {
    int in = -1;
    int out = -1;
    void say(const std::string& line) const {
      const std::string text = line + "\n";
      if (::write(out, text.data(), text.size()) < 0) _exit(99);
    }
    /// Waits for a line of the other side. Returns false if the other side has exited.
    bool receive() const {
      char c = 0;
      while (::read(in, &c, 1) == 1) {
        if (c == '\n') return true;
      }
      return false;
    }
  };

  template <class Body>
  explicit Forked(Body body) {
    int down[2];
    int up[2];
    if (pipe(down) != 0 || pipe(up) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(down[1]);
      close(up[0]);
      body(Side{down[0], up[1]});
      _exit(0);
    }
    close(down[0]);
    close(up[1]);
    side_ = {up[0], down[1]};
  }
  Forked(Forked&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), side_(std::exchange(other.side_, Side{})), reaped_(other.reaped_) {}
  Forked& operator=(Forked&&) = delete;
  ~Forked() {
    if (pid_ < 0) return;
    kill_now();
    close(side_.in);
    close(side_.out);
  }

  pid_t id() const { return pid_; }
  void say(const std::string& line) const { side_.say(line); }

  /// Returns the child's next line, or an empty string on timeout.
  std::string line(std::chrono::milliseconds timeout = kHangTimeout) const {
    std::string text;
    pollfd watched{side_.in, POLLIN, 0};
    char c = 0;
    while (poll(&watched, 1, static_cast<int>(timeout.count())) == 1 && ::read(side_.in, &c, 1) == 1 && c != '\n') {
      text += c;
    }
    return text;
  }
  /// Kills the child with SIGKILL and waits for its end.
  void kill_now() {
    if (!reaped_) ::kill(pid_, SIGKILL);
    (void)exit_code();
  }
  int exit_code() {
    int status = -1;
    if (!reaped_) waitpid(pid_, &status, 0);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  Side side_;
  bool reaped_ = false;
};

}  // namespace kiln::test
