#include "file_broker.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>

namespace kiln {
namespace {

// The host replies at once unless it has ended.
constexpr std::chrono::minutes kLimit{5};

// Global, because the intercepted C functions that the compiler calls have no other access to the channel.
std::atomic<int> broker_channel{-1};
std::mutex broker_mutex;  // serializes requests on the channel

}  // namespace

void use_file_broker(int channel) { broker_channel = channel; }

int ask_for_file(const char* path, FileRequest::Purpose purpose) {
  const int channel = broker_channel.load();
  errno = EACCES;
  if (channel < 0) return -1;
  const std::lock_guard lock(broker_mutex);
  const Status sent = send_frame(channel, frame_of(FileRequest{purpose, path}), kLimit);
  auto frame = sent ? receive_frame(channel, kLimit) : Result<std::optional<Frame>>(std::nullopt);
  // Without a reply the following messages would be out of sync.
  if (!frame || !*frame) _exit(1);
  auto answer = decode_file_reply(std::move(**frame));
  if (!answer) _exit(1);
  errno = answer->error;
  return answer->error == 0 ? answer->file.release() : -1;
}

}  // namespace kiln
