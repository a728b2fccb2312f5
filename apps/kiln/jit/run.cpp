// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/run.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/process/process.hpp"

namespace kiln::jit {
namespace {

using namespace std::chrono_literals;

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2};

volatile sig_atomic_t exit_code_of_command = 0;

// Makes SIGINT, SIGTERM, SIGHUP and SIGQUIT end this process with the exit code of the command, which has ended. A
// publication that is interrupted leaves no partial entry. SIGUSR2 was for the command and is ignored. Signals that
// were ignored stay ignored.
void exit_on_signals(int exit_code) {
  exit_code_of_command = exit_code;
  for (const int each : kPassedOn) {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    if (each != SIGUSR2) action.sa_handler = [](int) { _exit(exit_code_of_command); };
    struct sigaction before {};
    sigaction(each, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(each, &action, nullptr);
  }
}

/// Blocks the signals that `run_command` waits for, and sets SIGCHLD to its default: if the parent ignores it, which
/// programs inherit, the system discards the exit code of the command. The destructor restores both and discards
/// pending signals, so that a signal for a command that has ended does not end this process.
class WaitedSignals {
 public:
  WaitedSignals() {
    sigemptyset(&signals_);
    for (const int each : kPassedOn) sigaddset(&signals_, each);
    sigaddset(&signals_, SIGUSR1);
    sigaddset(&signals_, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, &child_before_);
  }
  ~WaitedSignals() {
    siginfo_t info{};
    while (wait(0ns, info)) {
    }
    sigaction(SIGCHLD, &child_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;

  /// Waits for one of the signals, at most `time`. Returns false if none came.
  bool wait(std::chrono::nanoseconds time, siginfo_t& info) const {
    const timespec limit{static_cast<time_t>(time / 1s), static_cast<long>((time % 1s).count())};
    return sigtimedwait(&signals_, &info, &limit) > 0;
  }

 private:
  sigset_t signals_;
  sigset_t before_;
  struct sigaction child_before_ {};
};

/// Runs a function on another thread, so that signals are passed on in the meantime. Not thread-safe.
class BackgroundCall {
 public:
  explicit BackgroundCall(const std::function<void()>& call) : call_(call) {}
  ~BackgroundCall() {
    if (thread_.joinable()) thread_.join();
  }
  BackgroundCall(const BackgroundCall&) = delete;
  BackgroundCall& operator=(const BackgroundCall&) = delete;

  /// Does nothing if the last call still runs, or if the system has no thread left: the command must not notice it.
  void start() {
    if (running_.exchange(true)) return;
    if (thread_.joinable()) thread_.join();
    try {
      thread_ = std::thread([this] {
        call_();
        running_ = false;
      });
    } catch (const std::system_error&) {
      running_ = false;
    }
  }

 private:
  const std::function<void()>& call_;
  std::atomic<bool> running_ = false;
  std::thread thread_;
};

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> environment = current_environment();
  for (const auto& variable : variables) {
    const std::string start = variable.first + "=";
    std::erase_if(environment, [&](const std::string& each) { return each.starts_with(start); });
    environment.push_back(start + variable.second);
  }
  return environment;
}

// Starts the command in this process group with this process's descriptors and ignored signals, as a shell would.
// Returns 0 or an error number.
int spawn_command(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                  const sigset_t& mask, pid_t& child) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);  // main ignores it
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const int error = posix_spawnp(&child, command.front().c_str(), nullptr, &attributes,
                                 argument_pointers(command).data(), argument_pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

sigset_t block_publish_signal() {
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  return before;
}

CommandEnd run_command(const std::vector<std::string>& command, const sigset_t& mask,
                       const std::vector<std::pair<std::string, std::string>>& variables, unsigned interval,
                       const std::function<void()>& publish) {
  BackgroundCall publication(publish);  // its destructor waits: a signal must be able to end that
  const WaitedSignals signals;
  pid_t child = -1;
  if (const int error = spawn_command(command, environment_with(variables), mask, child); error != 0)
    return {error == ENOENT ? 127 : 126, io_error("cannot start", command.front(), error)};
  const Clock& clock = system_clock();
  const auto period = std::chrono::seconds(interval);
  auto next = clock.steady() + period;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) {
      const int exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      exit_on_signals(exit_code);
      return {exit_code, {}};
    }
    if (ended < 0 && errno != EINTR) return {1, io_error("cannot wait for", command.front(), errno)};
    siginfo_t info{};
    if (signals.wait(interval != 0 ? 200ms : 1000ms, info)) {
      if (info.si_signo == SIGUSR1) publication.start();
      // A signal of the terminal (si_code above 0) reaches the command without help: it is in the same process group.
      if (info.si_signo != SIGUSR1 && info.si_signo != SIGCHLD && info.si_code <= 0) ::kill(child, info.si_signo);
    }
    if (interval != 0 && clock.steady() >= next) {
      publication.start();
      next = clock.steady() + period;
    }
  }
}

}  // namespace kiln::jit
