#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();  // what cannot be read, as of a process that has just ended, is empty, and no exception
  return std::move(out).str();
}

inline void spit(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Every file below a folder.
inline std::vector<std::string> files_below(const std::string& path) {
  std::vector<std::string> found;
  std::error_code missing;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path, missing)) {
    if (!entry.is_directory()) found.push_back(entry.path().string());
  }
  return found;
}

}  // namespace kiln::test
