// A worker that answers every recipe with the same artifact and admits that it saw nothing of what its compiler read,
// as a real one does when its canary fails.
#include "compile/worker_protocol.hpp"

int main() {
  using namespace kiln;
  const auto request = receive_frame(kWorkerChannel, std::chrono::seconds(30));
  if (!request || !*request) return 1;
  const auto job = decode_job((*request)->payload);
  if (!job) return 1;
  WorkerReply reply;
  reply.compiled.artifact.bytes = Bytes::of("bytes");
  reply.compiled.artifact.target = job->recipe.target;
  reply.observed = false;
  return send_frame(kWorkerChannel, frame_of(reply)) ? 0 : 1;
}
