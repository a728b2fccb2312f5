// SPDX-License-Identifier: Apache-2.0
// A worker that misbehaves according to the name of its unit: crash, abort, leave, close, garbage, half, head,
// nonsense, wrong, mute. With the suffix `-once` it does so only the first time, which it records in a file in the
// working directory. For a unit with another name it responds like a worker that did not observe any reads. If its
// program is called `deaf`, it never reads its input. A unit `busy<milliseconds>` keeps a core busy for that time
// before the response.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include "worker/worker_protocol.hpp"

namespace {

using namespace kiln;

Frame answer_to(const WorkerJob& job) {
  WorkerReply reply;
  reply.compiled.artifact.bytes = Bytes::of("bytes");
  reply.compiled.artifact.target = job.recipe.target;
  return frame_of(reply);
}

void write_raw(std::string_view bytes) { (void)!write(kWorkerChannel, bytes.data(), bytes.size()); }

void misbehave(const std::string& how, const WorkerJob& job) {
  const std::string whole = encode_frame(answer_to(job));
  if (how == "crash") {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer would handle it
    raise(SIGSEGV);
  }
  if (how == "abort") std::abort();
  if (how == "leave") _exit(3);
  if (how == "close") {
    close(kWorkerChannel);
    pause();
  }
  if (how == "garbage") {
    write_raw(std::string(5000, '\xa5'));
    pause();
  }
  if (how == "half") {
    write_raw(std::string_view(whole).substr(0, whole.size() / 2));
    _exit(0);
  }
  if (how == "head") {
    write_raw(std::string_view(whole).substr(0, 10));
    raise(SIGKILL);  // as the kernel's out-of-memory killer does
  }
  if (how == "nonsense") (void)send_frame(kWorkerChannel, {Frame::Type::Compiled, std::string(300, 'x'), {}});
  if (how == "wrong") (void)send_frame(kWorkerChannel, frame_of(job));
  if (how == "nonsense" || how == "wrong" || how == "mute") pause();
}

void stay_busy(const std::string& name) {
  if (name.rfind("busy", 0) != 0) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::atoi(name.c_str() + 4));
  while (std::chrono::steady_clock::now() < end) {
  }
}

bool first_time(const std::string& directory) {
  return open((directory + "/misbehaved").c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) >= 0;
}

}  // namespace

int main(int /*argc*/, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(60);  // ends the worker even if the test does not
  if (std::string_view(argv[0]).ends_with("deaf")) pause();
  for (;;) {
    const auto request = receive_frame(kWorkerChannel, std::chrono::seconds(60));
    if (!request || !*request) return 1;
    const auto job = decode_job((*request)->payload);
    if (!job) return 1;
    std::string how = job->recipe.unit.name();
    const std::size_t once = how.find("-once");
    how.resize(std::min(once, how.size()));
    if (once == std::string::npos || first_time(job->recipe.working_directory)) misbehave(how, *job);
    stay_busy(how);
    if (!send_frame(kWorkerChannel, answer_to(*job))) return 1;
  }
}
