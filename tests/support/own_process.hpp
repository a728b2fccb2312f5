#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace kiln::test {

/// How many of kiln's threads this process has: a sanitizer has threads of its own. A thread has its name a moment
/// after it has begun, so ask eventually where there should be one.
inline std::size_t threads_of_kiln() {
  std::size_t count = 0;
  std::error_code gone;  // a thread may end while they are counted
  for (auto it = std::filesystem::directory_iterator("/proc/self/task"); it != std::filesystem::directory_iterator();
       it.increment(gone)) {
    std::string name;
    std::ifstream comm(it->path() / "comm");
    std::getline(comm, name);
    if (name.starts_with("kiln-")) ++count;
  }
  return count;
}

/// How many sockets it has open.
inline std::size_t sockets_of_this_process() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // that of the iteration itself
    if (std::filesystem::read_symlink(entry, gone).string().starts_with("socket:")) ++count;
  }
  return count;
}

}  // namespace kiln::test
