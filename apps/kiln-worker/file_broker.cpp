// SPDX-License-Identifier: Apache-2.0
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
std::atomic<BrokeredFiles> brokered_files{BrokeredFiles::NamelessPch};
std::mutex broker_mutex;  // serializes requests on the channel

}  // namespace

void use_file_broker(int channel, BrokeredFiles files) {
  brokered_files = files;
  broker_channel = channel;
}

int ask_for_file(const char* path, FileRequest::Purpose purpose) {
  const int channel = broker_channel.load();
  errno = EACCES;
  if (channel < 0 || (brokered_files.load() != BrokeredFiles::AllDenied && !is_nameless_pch(path))) return -1;
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
