// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/compile/missing_header.hpp"

#include <string_view>
#include <vector>

#include "backends/cccl/cccl_library.hpp"
#include "backends/cuda/bundled_headers.hpp"
#include "backends/cuda/nvrtc_library.hpp"
#include "base/files/files.hpp"
#include "session/components.hpp"
#include "session/config/config.hpp"

namespace kiln::cli {
namespace {

// Returns the header in the compiler's message; empty if it is not a relative path.
std::string missing_header(std::string_view log) {
  constexpr std::string_view kMessage = "open source file \"";
  const std::size_t at = log.find(kMessage);
  if (at == std::string_view::npos) return {};
  log.remove_prefix(at + kMessage.size());
  const std::string header(log.substr(0, log.find_first_of("\"\n")));
  const bool is_plain = !header.empty() && header.front() != '/' && header.find("..") == std::string::npos;
  return is_plain ? header : std::string();
}

// Returns the directories in which the header can be: of the toolkits and packages that have an NVRTC, the one that
// compiles first; of cuda-cccl; and those that NVRTC installed.
std::vector<std::string> header_directories(const Config& config) {
  std::vector<std::string> directories;
  const auto add_toolkit = [&](const std::string& toolkit) {
    // CUDA 13 has CCCL in a directory of its own. PyPI's packages of CUDA 12 are next to each other.
    const std::string packages = parent_path(toolkit);
    for (const std::string& directory :
         {toolkit + "/include", toolkit + "/include/cccl", packages + "/cuda_cccl/include",
          packages + "/cuda_runtime/include", parent_path(packages) + "/cuda/cccl/headers/include"}) {
      directories.push_back(directory);
    }
  };
  const std::vector<NvrtcCandidate> compilers = nvrtc_candidates(NvrtcSearch::of_this_process(config.nvrtc));
  for (const bool chosen : {true, false}) {
    for (const NvrtcCandidate& candidate : compilers) {
      if (candidate.chosen == chosen) add_toolkit(parent_path(parent_path(candidate.path)));
    }
  }
  for (const std::string& toolkit : named_toolkits()) add_toolkit(toolkit);
  for (const CcclCandidate& candidate : cccl_candidates(config.cccl)) directories.push_back(candidate.headers);
  const std::string root = config.cache_path.empty() ? std::string() : config.cache_path.front();
  for (const std::string& place : installed_headers(bundled_headers_directory(config, root))) {
    for (const char* below : {"/cccl", ""}) directories.push_back(place + below);
  }
  return directories;
}

}  // namespace

std::string missing_header_hint(const Error& error) {
  const std::string header = is_missing_header(error) ? missing_header(error.log) : std::string();
  if (header.empty()) return {};
  for (const std::string& directory : header_directories(Config::load({}, {}))) {
    if (directory.empty() || !exists(join_path(directory, header))) continue;
    return header + " is in " + directory + ": add -I " + directory + " (in a kiln.toml: include = [\"" + directory +
           "\"])";
  }
  for (const char* library : {"cub/", "thrust/", "cuda/", "nv/"}) {
    if (!header.starts_with(library)) continue;
    return "no directory of this machine has " + header +
           ": 'pip install cuda-cccl' installs CUB, Thrust and libcu++, and NVRTC 13.3 and later bundle them";
  }
  return {};
}

}  // namespace kiln::cli
