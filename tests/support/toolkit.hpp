#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kiln::test {

/// The CUDA toolkit of this machine: CUDA_HOME, or what nvcc on the PATH belongs to. Empty where there is none.
inline std::string toolkit_root() {
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') return home;
  const char* path = std::getenv("PATH");
  const std::string list = path != nullptr ? path : "";
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    const std::string nvcc = list.substr(at, end - at) + "/nvcc";
    if (access(nvcc.c_str(), X_OK) == 0) {
      return std::filesystem::canonical(nvcc).parent_path().parent_path().string();
    }
    at = end + 1;
  }
  return {};
}

inline std::string toolkit_nvrtc() {
  const std::string root = toolkit_root();
  if (root.empty()) return {};
  const std::string path = root + "/lib64/libnvrtc.so.13";
  return access(path.c_str(), R_OK) == 0 ? path : std::string();
}

/// The PyPI package's NVRTC that tools/setup.sh installed into `<source tree>/.venv`; empty where it did not.
inline std::string package_nvrtc(const std::string& source_tree) {
  std::error_code ignored;
  for (const auto& python : std::filesystem::directory_iterator(source_tree + "/.venv/lib", ignored)) {
    const std::string path = python.path().string() + "/site-packages/nvidia/cu13/lib/libnvrtc.so.13";
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

/// The folders by which a kernel that includes CUB is compiled.
inline std::vector<std::string> cub_roots() { return {toolkit_root() + "/include/cccl", toolkit_root() + "/include"}; }

/// A kernel that includes CUB: some 700 headers and a compile of one to two seconds.
inline std::string cub_source() {
  return "#include <cub/block/block_reduce.cuh>\n"
         "extern \"C\" __global__ void sum(const int* in, int* out) {\n"
         "  using Reduce = cub::BlockReduce<int, 128>;\n"
         "  __shared__ typename Reduce::TempStorage storage;\n"
         "  const int total = Reduce(storage).Sum(in[threadIdx.x]);\n"
         "  if (threadIdx.x == 0) *out = total;\n"
         "}\n";
}
inline std::vector<std::string> cub_options() { return {"-std=c++17", "-default-device", "-DCUB_DISABLE_CDP"}; }

}  // namespace kiln::test
