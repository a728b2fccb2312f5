// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/selftest/isolated.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/files/files.hpp"

namespace kiln::cli::selftest {
namespace {

using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void run_as_child(int to, const std::function<std::string()>& function) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const std::string text = function();
  _exit(write_all(to, text, "the pipe") ? 0 : 1);
}

// Reads until the end of the pipe. Returns false if the time is over before that.
bool read_to_end(int from, SteadyClock::time_point deadline, std::string& text) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    if (left <= 0) return false;
    pollfd ready{from, POLLIN, 0};
    const int polled = poll(&ready, 1, static_cast<int>(left));
    if (polled < 0 && errno != EINTR) return true;
    if (polled <= 0) continue;
    char block[4096];
    const ssize_t got = read(from, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<std::string> run_in_child(const std::function<std::string()>& function, std::chrono::milliseconds timeout) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return io_error("cannot create", "a pipe", errno);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  const pid_t child = fork();
  if (child < 0) return io_error("cannot start", "a process", errno);
  if (child == 0) run_as_child(writer.get(), function);
  writer = Fd();  // so that the pipe ends with the child
  std::string text;
  const bool ended = read_to_end(reader.get(), SteadyClock::now() + timeout, text);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) {
    return make_error(Code::TimedOut,
                      "the check took longer than " +
                          std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeout).count()) +
                          " s and was ended");
  }
  if (WIFSIGNALED(status)) {
    return make_error(Code::Internal, "the process of the check crashed: signal " + std::to_string(WTERMSIG(status)) +
                                          " (" + strsignal(WTERMSIG(status)) + ")");
  }
  if (status != 0) return make_error(Code::Internal, "the process of the check ended by itself");
  return text;
}

}  // namespace kiln::cli::selftest
