// SPDX-License-Identifier: Apache-2.0
// A worker that passes its jobs to a real kiln-worker and changes the results, like a compiler with a faulty
// precompiled header: altering_worker MODE JOBS KILN_WORKER PARENT LIMIT. Each job adds a line to the file JOBS. MODE:
// nothing; use (changes the output of a compile with a precompiled header); log (changes its log); next (changes the
// output of every compile after one with a precompiled header); die (exits when it has to use one).
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "worker/worker_protocol.hpp"

namespace {

using kiln::Frame;
using kiln::PchRequest;
using kiln::WorkerReply;

constexpr std::chrono::minutes kHangTimeout{10};

// Starts the real worker. Returns its channel, or -1.
int start_worker(const char* program, const char* limit) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  const std::string parent = std::to_string(getpid());
  if (fork() == 0) {
    dup2(ends[1], kiln::kWorkerChannel);
    execl(program, "kiln-worker", parent.c_str(), limit, nullptr);
    _exit(127);
  }
  close(ends[1]);
  return ends[0];
}

void alter(WorkerReply& reply) {
  std::string bytes(reply.compiled.artifact.bytes.view());
  reply.compiled.artifact.bytes = kiln::Bytes::of(bytes + "// altered\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string mode = argv[1];
  std::ofstream jobs(argv[2], std::ios::app);
  const int worker = start_worker(argv[3], argv[5]);
  bool used_before = false;
  while (true) {
    auto request = kiln::receive_frame(kiln::kWorkerChannel, kHangTimeout);
    if (!request || !*request) return 0;
    const auto job = kiln::decode_job((*request)->payload);
    if (!job) return 1;
    jobs << job->recipe.unit.name() << ' ' << static_cast<int>(job->pch.mode) << std::endl;
    const bool uses = job->pch.mode == PchRequest::Mode::Use;
    if (uses && mode == "die") return 1;
    if (!kiln::send_frame(worker, **request)) return 1;
    auto answer = kiln::receive_frame(worker, kHangTimeout);
    while (answer && *answer && (*answer)->type == Frame::Type::Open) {
      if (!kiln::send_frame(kiln::kWorkerChannel, **answer)) return 1;
      const auto opened = kiln::receive_frame(kiln::kWorkerChannel, kHangTimeout);
      if (!opened || !*opened || !kiln::send_frame(worker, **opened)) return 1;
      answer = kiln::receive_frame(worker, kHangTimeout);
    }
    if (!answer || !*answer) return 1;
    if ((*answer)->type == Frame::Type::Compiled) {
      auto reply = kiln::decode_reply(**answer);
      if (!reply) return 1;
      if ((uses && mode == "use") || (used_before && mode == "next")) alter(*reply);
      if (uses && mode == "log") reply->compiled.artifact.metadata.log += "another remark\n";
      *answer = kiln::frame_of(*reply);
    }
    used_before = used_before || uses;
    if (!kiln::send_frame(kiln::kWorkerChannel, **answer)) return 1;
  }
}
