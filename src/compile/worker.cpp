#include "compile/worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

// How long a worker that has lost its channel may take to end.
constexpr std::chrono::milliseconds kTimeToEnd{2000};
// And one that spoke nonsense: it may be still alive, and this is only to know whether it was killed as it spoke.
constexpr std::chrono::milliseconds kTimeToBeDead{100};

}  // namespace

std::string used_of_limit(std::uint64_t used, std::uint64_t limit) {
  const auto megabytes = [](std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MB"; };
  return "having used " + megabytes(used) + " of the " + megabytes(limit) + " that it may use (KILN_WORKER_MEMORY)";
}

Worker::Worker(Process process, Fd channel, std::uint64_t memory_limit)
    : process_(std::move(process)), channel_(std::move(channel)), memory_limit_(memory_limit) {}

Result<std::unique_ptr<Worker>> Worker::start(const Start& start) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return io_failure("cannot make", "a channel to the worker", errno);
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  Process::Start how;
  how.arguments = {start.program, std::to_string(getpid()), std::to_string(start.memory_limit)};
  how.environment = start.environment;
  how.descriptors = {{nothing.get(), 0}, {nothing.get(), 1}, {theirs.get(), kWorkerChannel}};
  how.deaf_to_terminal = true;
  auto process = Process::spawn(how);
  if (!process) return process.error();
  return std::unique_ptr<Worker>(new Worker(std::move(*process), std::move(ours), start.memory_limit));
}

Worker::Talk Worker::ask(const Frame& request, std::chrono::milliseconds limit, const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { kill(); });
  const auto deadline = system_clock().steady() + limit;
  const Status sent = send_frame(channel_.get(), request, limit);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - system_clock().steady());
  auto answer = sent ? receive_frame(channel_.get(), left) : Result<std::optional<Frame>>(std::nullopt);
  if (answer && *answer) return {Talk::End::Answered, std::move(**answer), {}, false};
  Talk talk;
  if (stop.stop_requested()) {
    talk.end = Talk::End::Stopped;
  } else if ((!sent && sent.error().code == Code::TimedOut) || (!answer && answer.error().code == Code::TimedOut)) {
    talk.end = Talk::End::Silent;
  } else if (!answer) {
    talk = after_death(kTimeToBeDead);
    if (!talk.blameless) talk = {Talk::End::Garbled, {}, answer.error().message, false};
  } else {
    talk = after_death(kTimeToEnd);
  }
  kill();
  return talk;
}

Worker::Talk Worker::after_death(std::chrono::milliseconds limit) {
  Talk talk;
  talk.how = "ended without an answer";
  const auto exit = process_.wait(limit);
  if (!exit) return talk;
  if (exit->signal != 0) talk.how = "was ended by signal " + std::to_string(exit->signal);
  if (exit->code != 0) talk.how = "ended with code " + std::to_string(exit->code);
  const bool was_large = exit->peak_bytes > memory_limit_ / 2;
  if (was_large) talk.how += ", " + used_of_limit(exit->peak_bytes, memory_limit_);
  talk.blameless = exit->signal == SIGKILL && !was_large;
  return talk;
}

}  // namespace kiln
