// SPDX-License-Identifier: Apache-2.0
#include "backends/command/command_runner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

constexpr off_t kMaxOutput = 4 << 20;

// Creates an in-memory file of fixed maximum size for the output of a program. The program shares the file offset of
// the descriptor, which gives the size of the output.
Result<Fd> make_output() {
  const int fd = memfd_create("kiln-output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return io_error("cannot create", "an in-memory file", errno);
  Fd file(fd);
  if (ftruncate(fd, kMaxOutput) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) != 0) {
    return io_error("cannot limit the size of", "an in-memory file", errno);
  }
  return file;
}

std::string output_of(const Fd& file) {
  const off_t end = lseek(file.get(), 0, SEEK_CUR);
  std::string text(static_cast<std::size_t>(end > 0 ? end : 0), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(got > 0 ? got : 0));
  return text;
}

// Waits until the process has exited, without reaping it. Its id is not reused until it is reaped.
bool has_ended(const Fd& pidfd, std::chrono::nanoseconds timeout) {
  const Deadline deadline(system_clock(), timeout);
  for (;;) {
    pollfd watched{pidfd.get(), POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining());
    const int ready = poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left.count() + 1, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (deadline.remaining().count() == 0) return false;
  }
}

// Kills the process group. The id is valid as long as its first process has not been reaped. A host that ignores
// SIGCHLD or waits for any child may have reaped it.
void end_group(pid_t group) {
  siginfo_t ignored;
  if (waitid(P_PID, static_cast<id_t>(group), &ignored, WEXITED | WNOHANG | WNOWAIT) == 0) (void)kill(-group, SIGKILL);
}

Error cancelled(const Process::SpawnOptions& start) {
  return make_error(Code::Cancelled, start.arguments.at(0) + " was terminated: its result is no longer needed");
}

}  // namespace

Result<Process> CommandRunner::begin(const Process::SpawnOptions& start) {
  const MutexLock lock(mutex_);
  if (interrupted_) return cancelled(start);
  Result<Process> process = Process::spawn(start);
  if (process) groups_.insert(process->id());
  return process;
}

// Terminates the remaining processes of the group. Returns true if `interrupt` was called.
bool CommandRunner::finish(pid_t group) {
  const MutexLock lock(mutex_);
  end_group(group);
  groups_.erase(group);
  return interrupted_;
}

void CommandRunner::end(pid_t group) {
  const MutexLock lock(mutex_);
  if (groups_.contains(group)) end_group(group);
}

Result<CommandRunner::RunResult> CommandRunner::run(Process::SpawnOptions start, std::chrono::milliseconds timeout,
                                                    const std::stop_token& stop) {
  Result<Fd> output = make_output();
  if (!output) return std::move(output).error();
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  start.block_terminal_signals = true;
  start.descriptors.insert(start.descriptors.begin(), {{nothing.get(), 0}, {output->get(), 1}, {output->get(), 2}});
  Result<Process> process = begin(start);
  if (!process) return std::move(process).error();
  const std::stop_callback on_stop(stop, [this, group = process->id()] { end(group); });

  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process->id(), 0)));
  // In a host that ignores SIGCHLD the process may have disappeared already. Otherwise the kernel is older than 5.3.
  const bool gone = !pidfd && errno == ESRCH;
  const bool in_time = gone || (pidfd && has_ended(pidfd, timeout));
  const bool was_interrupted = finish(process->id()) || stop.stop_requested();
  const std::optional<Process::Exit> exit = process->wait(std::chrono::seconds(5));
  if (was_interrupted && !(in_time && exit && exit->succeeded())) return cancelled(start);
  if (!pidfd && !gone) return make_error(Code::Unsupported, "this kernel does not support pidfd_open");
  if (!in_time || !exit) {
    return make_error(Code::TimedOut,
                      start.arguments.at(0) + " timed out after " + std::to_string(timeout.count() / 1000) +
                          " s and was terminated; run it by hand to see what it waits for",
                      output_of(*output));
  }
  return RunResult{*exit, output_of(*output)};
}

void CommandRunner::interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  for (const pid_t group : groups_) end_group(group);
}

}  // namespace kiln
