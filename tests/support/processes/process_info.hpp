// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace kiln::test {

/// Returns the number of kiln's threads in this process; a sanitizer has its own threads. A thread gets its name
/// shortly after its start, so use `eventually` to wait for one.
inline std::size_t threads_of_kiln() {
  std::size_t count = 0;
  std::error_code gone;  // a thread may end during the count
  for (auto it = std::filesystem::directory_iterator("/proc/self/task"); it != std::filesystem::directory_iterator();
       it.increment(gone)) {
    std::string name;
    std::ifstream comm(it->path() / "comm");
    std::getline(comm, name);
    if (name.starts_with("kiln-")) ++count;
  }
  return count;
}

/// Returns the number of open sockets of this process.
inline std::size_t sockets_of_this_process() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // descriptor of the iteration itself
    if (std::filesystem::read_symlink(entry, gone).string().starts_with("socket:")) ++count;
  }
  return count;
}

}  // namespace kiln::test
