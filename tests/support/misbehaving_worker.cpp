// A worker that does what its unit is called: crash, abort, leave, close, garbage, half, head,
// nonsense, wrong, mute. With
// `-once` behind it, it does so the first time only, of which a file in the working directory is the memory. A unit
// with another name is answered as by a worker that saw nothing. Called `deaf`, it never reads what it is sent.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "compile/worker_protocol.hpp"

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
    signal(SIGSEGV, SIG_DFL);  // which a sanitizer would make something else of
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
    raise(SIGKILL);  // as the kernel would, for want of memory elsewhere
  }
  if (how == "nonsense") (void)send_frame(kWorkerChannel, {Frame::Type::Compiled, std::string(300, 'x'), {}});
  if (how == "wrong") (void)send_frame(kWorkerChannel, frame_of(job));
  if (how == "nonsense" || how == "wrong" || how == "mute") pause();
}

bool first_time(const std::string& folder) {
  return open((folder + "/misbehaved").c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) >= 0;
}

}  // namespace

int main(int /*argc*/, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(60);  // whatever the test forgets
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
    if (!send_frame(kWorkerChannel, answer_to(*job))) return 1;
  }
}
