#include "compile/command_runner.hpp"

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

constexpr off_t kMostOutput = 4 << 20;

// A file in memory that takes what a program prints and cannot grow beyond its bound: the descriptor's place in it,
// which the program shares with us, says how much that was.
Result<Fd> make_output() {
  const int fd = memfd_create("kiln-output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return io_failure("cannot make", "a file in memory", errno);
  Fd file(fd);
  if (ftruncate(fd, kMostOutput) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) != 0) {
    return io_failure("cannot bound", "a file in memory", errno);
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

// Waits until the process has ended and does not take its status: as long as nobody has, its number is not another's.
bool has_ended(const Fd& pidfd, std::chrono::nanoseconds limit) {
  const Deadline deadline(system_clock(), limit);
  for (;;) {
    pollfd watched{pidfd.get(), POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left());
    const int ready = poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left.count() + 1, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (deadline.left().count() == 0) return false;
  }
}

// The number is a group's of ours for as long as nobody has waited for its first process; a host that ignores SIGCHLD
// or waits for any child may have.
void end_group(pid_t group) {
  siginfo_t ignored;
  if (waitid(P_PID, static_cast<id_t>(group), &ignored, WEXITED | WNOHANG | WNOWAIT) == 0) (void)kill(-group, SIGKILL);
}

Error cancelled(const Process::Start& start) {
  return failure(Code::Cancelled, start.arguments.at(0) + " was ended: nobody wants its result any more");
}

}  // namespace

Result<Process> CommandRunner::begin(const Process::Start& start) {
  const MutexLock lock(mutex_);
  if (interrupted_) return cancelled(start);
  Result<Process> process = Process::spawn(start);
  if (process) groups_.insert(process->id());
  return process;
}

// Ends what the program has left running; whether it was interrupted.
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

Result<CommandRunner::Ended> CommandRunner::run(Process::Start start, std::chrono::milliseconds limit,
                                                const std::stop_token& stop) {
  Result<Fd> output = make_output();
  if (!output) return std::move(output).error();
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  start.deaf_to_terminal = true;
  start.descriptors.insert(start.descriptors.begin(), {{nothing.get(), 0}, {output->get(), 1}, {output->get(), 2}});
  Result<Process> process = begin(start);
  if (!process) return std::move(process).error();
  const std::stop_callback on_stop(stop, [this, group = process->id()] { end(group); });

  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process->id(), 0)));
  // In a host that ignores SIGCHLD it may be gone already. Otherwise the kernel is older than 5.3.
  const bool gone = !pidfd && errno == ESRCH;
  const bool in_time = gone || (pidfd && has_ended(pidfd, limit));
  const bool was_interrupted = finish(process->id()) || stop.stop_requested();
  const std::optional<Process::Exit> exit = process->wait(std::chrono::seconds(5));
  if (was_interrupted && !(in_time && exit && exit->clean())) return cancelled(start);
  if (!pidfd && !gone) return failure(Code::Unsupported, "this kernel cannot watch processes (pidfd_open)");
  if (!in_time || !exit) {
    return failure(
        Code::TimedOut,
        start.arguments.at(0) + " was still running after " + std::to_string(limit.count() / 1000) + " s and was ended",
        output_of(*output));
  }
  return Ended{*exit, output_of(*output)};
}

void CommandRunner::interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  for (const pid_t group : groups_) end_group(group);
}

}  // namespace kiln
