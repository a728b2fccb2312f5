// SPDX-License-Identifier: Apache-2.0
#include "session/device_presence.hpp"

#include <unistd.h>

#include "backends/opencl/opencl_library.hpp"

namespace kiln {
namespace {

// The driver's control node, the one of WSL, and those of integrated GPUs.
constexpr const char* kCudaNodes[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu/igpu0/ctrl"};

bool cuda_present() {
  for (const char* node : kCudaNodes) {
    if (access(node, F_OK) == 0) return true;
  }
  return false;
}

}  // namespace

bool is_device_present(const std::string& kind) {
  if (kind == "cuda") return cuda_present();
  if (kind == "opencl") return opencl_installed().has_value();
  return false;
}

}  // namespace kiln
