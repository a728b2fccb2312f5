#include "bench/units.hpp"

#include <filesystem>

#include "base/environment.hpp"
#include "base/error.hpp"

namespace kiln::bench {
namespace {

namespace fs = std::filesystem;

fs::path toolkit() {
  if (const auto home = environment_variable("CUDA_HOME")) return *home;
  std::string folders = environment_variable("PATH").value_or("");
  for (std::size_t start = 0; start < folders.size();) {
    const std::size_t end = std::min(folders.find(':', start), folders.size());
    std::error_code none;
    const fs::path nvcc = fs::canonical(fs::path(folders.substr(start, end - start)) / "nvcc", none);
    if (!none) return nvcc.parent_path().parent_path();
    start = end + 1;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> toolkit_include_roots() {
  const fs::path include = toolkit() / "include";
  // From CUDA 13 on CUB has a folder of its own.
  const fs::path cccl = include / "cccl";
  std::error_code none;
  if (fs::exists(cccl / "cub", none)) return std::vector<std::string>{cccl.string(), include.string()};
  if (fs::exists(include / "cub", none)) return std::vector<std::string>{include.string()};
  return failure(Code::Unavailable, "there is no CUDA toolkit with CUB; set CUDA_HOME to one");
}

}  // namespace kiln::bench
