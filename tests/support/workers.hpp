#pragma once

#include <sys/types.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files.hpp"

namespace kiln::test {

/// Processes by the name of kiln-worker that `parent` has started, whether it still lives or not.
inline std::vector<pid_t> workers_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    // `kiln-worker <parent>`: the number that it was started with stays, whoever adopts it.
    const std::string line = slurp(entry.path().string() + "/cmdline");
    if (line.find("kiln-worker") != std::string::npos &&
        line.find(std::string(1, '\0') + std::to_string(parent) + '\0') != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

}  // namespace kiln::test
