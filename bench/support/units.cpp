// SPDX-License-Identifier: Apache-2.0
#include "bench/support/units.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/process/environment.hpp"

namespace kiln::bench {
namespace {

namespace fs = std::filesystem;

fs::path toolkit() {
  if (const auto home = environment_variable("CUDA_HOME")) return *home;
  std::string directories = environment_variable("PATH").value_or("");
  for (std::size_t start = 0; start < directories.size();) {
    const std::size_t end = std::min(directories.find(':', start), directories.size());
    std::error_code none;
    const fs::path nvcc = fs::canonical(fs::path(directories.substr(start, end - start)) / "nvcc", none);
    if (!none) return nvcc.parent_path().parent_path();
    start = end + 1;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> toolkit_include_roots() {
  const fs::path include = toolkit() / "include";
  // Since CUDA 13, CUB has its own directory.
  const fs::path cccl = include / "cccl";
  std::error_code none;
  if (fs::exists(cccl / "cub", none)) return std::vector<std::string>{cccl.string(), include.string()};
  if (fs::exists(include / "cub", none)) return std::vector<std::string>{include.string()};
  return make_error(Code::Unavailable, "no CUDA toolkit with CUB found; set CUDA_HOME");
}

}  // namespace kiln::bench
