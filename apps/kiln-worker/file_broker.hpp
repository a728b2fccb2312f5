// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/worker_protocol.hpp"

namespace kiln {

/// The files that a worker requests from its host.
enum class BrokeredFiles : bool { NamelessPch, AllDenied };
/// Requests files from the host on this channel: precompiled headers without a name, or also all that the sandbox does
/// not allow this process to open.
void use_file_broker(int channel, BrokeredFiles files);

/// Requests a file from the host after `open` in this process failed. Returns a descriptor, or -1 with
/// errno if the host denies it or no broker is in use. Thread-safe.
int ask_for_file(const char* path, FileRequest::Purpose purpose);

}  // namespace kiln
