#include "device/presence.hpp"

#include <unistd.h>

#include "vendor/opencl_library.hpp"

namespace kiln {
namespace {

// The driver's control node; the same of a Linux that runs under Windows; an integrated GPU's.
constexpr const char* kCudaNodes[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu/igpu0/ctrl"};

bool cuda_present() {
  for (const char* node : kCudaNodes) {
    if (access(node, F_OK) == 0) return true;
  }
  return false;
}

}  // namespace

bool device_present(const std::string& kind) {
  if (kind == "cuda") return cuda_present();
  if (kind == "opencl") return opencl_installed().ok();
  return false;
}

}  // namespace kiln
