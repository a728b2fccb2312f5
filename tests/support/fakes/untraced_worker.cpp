// SPDX-License-Identifier: Apache-2.0
// A worker that returns the same artifact for every recipe and reports that it did not observe the compiler's reads,
// like a real worker whose canary check fails.
#include "worker/worker_protocol.hpp"

int main() {
  using namespace kiln;
  const auto request = receive_frame(kWorkerChannel, std::chrono::seconds(30));
  if (!request || !*request) return 1;
  const auto job = decode_job((*request)->payload);
  if (!job) return 1;
  WorkerReply reply;
  reply.compiled.artifact.bytes = Bytes::of("bytes");
  reply.compiled.artifact.target = job->recipe.target;
  reply.accesses_complete = false;
  return send_frame(kWorkerChannel, frame_of(reply)) ? 0 : 1;
}
