// SPDX-License-Identifier: Apache-2.0
#include "session/device_presence.hpp"

#include <unistd.h>

namespace kiln {
namespace {

// The driver's control node, the one of WSL, and those of integrated GPUs.
constexpr const char* kCudaNodes[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu/igpu0/ctrl"};

}  // namespace

bool is_cuda_device_present() {
  for (const char* node : kCudaNodes) {
    if (access(node, F_OK) == 0) return true;
  }
  return false;
}

}  // namespace kiln
