#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

namespace kiln::test {

/// A child made by fork that runs `body` and leaves without running the parent's exit handlers. The two talk over a
/// pipe each way: `body` gets a Forked::Side. A child that still runs when this is destroyed is killed.
class Forked {
 public:
  struct Side {
    int in = -1;
    int out = -1;
    void say(const std::string& line) const {
      const std::string text = line + "\n";
      if (::write(out, text.data(), text.size()) < 0) _exit(99);
    }
    /// Until the other side says a line; false when it is gone.
    bool hear() const {
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

  /// The child's next line; empty when it says nothing within the limit.
  std::string line(std::chrono::milliseconds limit = std::chrono::seconds(20)) const {
    std::string text;
    pollfd watched{side_.in, POLLIN, 0};
    char c = 0;
    while (poll(&watched, 1, static_cast<int>(limit.count())) == 1 && ::read(side_.in, &c, 1) == 1 && c != '\n') {
      text += c;
    }
    return text;
  }
  /// Kills it as -9 does, and waits until it is gone.
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
