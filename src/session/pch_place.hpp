// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/process/system_info.hpp"
#include "session/config/config.hpp"
#include "worker/pch_cache.hpp"

namespace kiln {

/// Where the choice of a place looks. Tests set their own; all other callers use the default.
struct PchSurroundings {
  SystemFileRoot files{};           ///< memory, cgroups, and the signs of a container
  std::string root = "/";           ///< a directory on the root file system of the container
  std::string memory = "/dev/shm";  ///< a directory in memory that all users of the IPC namespace can write to
};

/// Returns the cache of precompiled headers for a cache directory, or no value if there must be none; `failure_reason`
/// then receives the reason and the next step. `cache_root` is empty if there is no usable cache directory.
/// docs/explanation/precompiled-headers.md has the rule as a table. Creates at most an empty directory in memory.
std::optional<PchCache::Options> pch_cache_options(const Config& config, const std::string& cache_root,
                                                   std::string* failure_reason = nullptr,
                                                   const PchSurroundings& surroundings = {});

}  // namespace kiln
