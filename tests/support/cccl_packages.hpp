#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kiln::test {

/// The folder into which tools/setup.sh installed the newest release of cuda-cccl that kiln knows; empty where it did
/// not.
inline std::string cccl_package() {
  std::error_code ignored;
  for (const auto& python : std::filesystem::directory_iterator(std::string(KILN_SOURCE_DIR) + "/.venv/lib", ignored)) {
    const std::filesystem::path packages = python.path() / "site-packages";
    if (std::filesystem::is_directory(packages / "cuda/compute", ignored)) return packages.string();
  }
  return {};
}

/// That of an older one, such as "1.2.0".
inline std::string cccl_package(const std::string& release) {
  std::error_code ignored;
  const std::filesystem::path packages = std::string(KILN_SOURCE_DIR) + "/.venv/cccl-" + release;
  return std::filesystem::is_directory(packages / "cuda/compute", ignored) ? packages.string() : std::string();
}

/// All of them by their release, the newest first.
struct CcclPackage {
  std::string release;
  std::string folder;
};
inline std::vector<CcclPackage> cccl_packages() {
  return {{"1.2.1", cccl_package()}, {"1.2.0", cccl_package("1.2.0")}, {"1.1.1", cccl_package("1.1.1")}};
}

}  // namespace kiln::test
