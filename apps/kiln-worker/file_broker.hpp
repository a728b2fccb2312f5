#pragma once

#include "worker/worker_protocol.hpp"

namespace kiln {

/// Requests files that the sandbox does not allow this process to open from the host, on this channel.
void use_file_broker(int channel);

/// Requests a file from the host after `open` in this process failed with EACCES. Returns a descriptor, or -1 with
/// errno if the host denies it or no broker is in use. Thread-safe.
int ask_for_file(const char* path, FileRequest::Purpose purpose);

}  // namespace kiln
