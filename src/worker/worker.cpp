// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/temporary_directory.hpp"
#include "base/process/dynamic_library.hpp"
#include "base/process/environment.hpp"

namespace kiln {
namespace {

// Time that a worker has to exit after it has lost its channel.
constexpr std::chrono::milliseconds kTimeToEnd{2000};
// Time to wait after an invalid frame, to detect whether the worker was killed while it sent the frame. It can still be
// alive.
constexpr std::chrono::milliseconds kTimeToBeDead{100};

// Creates a directory of mode 0700 where no other user can replace it: programs of the worker write code there. Returns
// an empty string if the directory cannot be created.
Result<std::string> make_temporary_directory() {
  const Result<std::string> parent = safe_temporary_parent(environment_variable("TMPDIR").value_or("/tmp"));
  if (!parent) return parent.error();
  std::string path = join_path(*parent, "kiln-worker-XXXXXX");
  return mkdtemp(path.data()) != nullptr ? path : std::string();
}

}  // namespace

std::string find_worker(const std::string& configured) {
  if (!configured.empty()) return access(configured.c_str(), X_OK) == 0 ? configured : std::string();
  std::string directory = path_of_address(reinterpret_cast<const void*>(&find_worker));
  directory.resize(directory.rfind('/') == std::string::npos ? 0 : directory.rfind('/'));
  // Next to the program, in an installed tree, in a Python package.
  for (const char* place : {"/kiln-worker", "/../bin/kiln-worker", "/../libexec/kiln/kiln-worker",
                            "/../../libexec/kiln/kiln-worker", "/bin/kiln-worker"}) {
    if (access((directory + place).c_str(), X_OK) == 0) return directory + place;
  }
  return {};
}

std::string format_memory_usage(std::uint64_t used, std::uint64_t limit) {
  const auto megabytes = [](std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MB"; };
  return "after using " + megabytes(used) + " of " + megabytes(limit) + " allowed (KILN_WORKER_MEMORY)";
}

RemovedDirectory::~RemovedDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Worker::Worker(Process process, Fd channel, const Start& start, std::string temporary_directory)
    : temporary_directory_(std::move(temporary_directory)), process_(std::move(process)), channel_(std::move(channel)),
      memory_limit_(start.memory_limit) {}

Result<std::unique_ptr<Worker>> Worker::start(const Start& start) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return io_error("cannot create", "a channel to the worker", errno);
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  Process::SpawnOptions how;
  how.arguments = {start.program, std::to_string(getpid()), std::to_string(start.memory_limit)};
  how.environment = start.environment;
  how.descriptors = {{nothing.get(), 0}, {nothing.get(), 1}, {theirs.get(), kWorkerChannel}};
  how.block_terminal_signals = true;
  std::string temporary;
  if (start.own_temporary_directory) {
    auto made = make_temporary_directory();
    if (!made) return made.error();
    temporary = *std::move(made);
  }
  if (!temporary.empty()) {
    std::erase_if(how.environment, [](const std::string& entry) { return entry.starts_with("TMPDIR="); });
    how.environment.push_back("TMPDIR=" + temporary);
  }
  auto process = Process::spawn(how);
  if (!process) return process.error();
  return std::unique_ptr<Worker>(new Worker(std::move(*process), std::move(ours), start, std::move(temporary)));
}

Result<std::optional<Frame>> Worker::converse(WorkerFiles& files, std::chrono::nanoseconds deadline) {
  const auto left = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline - system_clock().steady());
  };
  for (;;) {
    auto frame = receive_frame(channel_.get(), left());
    if (!frame || !*frame || (*frame)->type != Frame::Type::Open) return frame;
    const auto request = decode_file_request((*frame)->payload);
    if (!request) return request.error();
    if (Status sent = send_frame(channel_.get(), frame_of(files.open(*request)), left()); !sent) {
      // According to the channel, the worker has exited.
      return sent.error().code == Code::TimedOut ? Result<std::optional<Frame>>(sent.error())
                                                 : Result<std::optional<Frame>>(std::nullopt);
    }
  }
}

Worker::Exchange Worker::request(const WorkerJob& job, std::chrono::milliseconds timeout, const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { kill(); });
  const auto deadline = system_clock().steady() + timeout;
  const Status sent = send_frame(channel_.get(), frame_of(job), timeout);
  WorkerFiles files(job);
  auto answer = sent ? converse(files, deadline) : Result<std::optional<Frame>>(std::nullopt);
  if (answer && *answer) return {Exchange::Outcome::Answered, std::move(**answer), {}, false, files.rejected()};
  Exchange talk;
  if (stop.stop_requested()) {
    talk.end = Exchange::Outcome::Stopped;
  } else if ((!sent && sent.error().code == Code::TimedOut) || (!answer && answer.error().code == Code::TimedOut)) {
    talk.end = Exchange::Outcome::TimedOut;
  } else if (!answer) {
    talk = after_death(kTimeToBeDead);
    if (!talk.killed_externally) talk = {Exchange::Outcome::ProtocolError, {}, answer.error().message, false, {}};
  } else {
    talk = after_death(kTimeToEnd);
  }
  kill();
  return talk;
}

Worker::Exchange Worker::after_death(std::chrono::milliseconds timeout) {
  Exchange talk;
  talk.description = "exited without a reply";
  const auto exit = process_.wait(timeout);
  if (!exit) return talk;
  if (exit->signal != 0) talk.description = "was killed by signal " + std::to_string(exit->signal);
  if (exit->code != 0) talk.description = "exited with code " + std::to_string(exit->code);
  const bool was_large = exit->peak_bytes > memory_limit_ / 2;
  if (was_large) talk.description += ", " + format_memory_usage(exit->peak_bytes, memory_limit_);
  talk.killed_externally = exit->signal == SIGKILL && !was_large;
  return talk;
}

}  // namespace kiln
