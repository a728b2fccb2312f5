// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/fixtures/files.hpp"

namespace kiln::test {

/// The state of a process in /proc, possibly a zombie.
struct ProcessLine {
  pid_t id = 0;
  pid_t parent = 0;
  char state = 'X';                       ///< X means that the process does not exist
  std::chrono::milliseconds cpu_time{0};  ///< in user and kernel mode
  bool runs() const { return state != 'X' && state != 'Z'; }
};

inline ProcessLine process_line(pid_t id) {
  ProcessLine line;
  line.id = id;
  const std::string text = read_text("/proc/" + std::to_string(id) + "/stat");
  // The name may contain spaces and brackets; the fields after it do not.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return line;
  std::istringstream rest(text.substr(name_end + 1));
  rest >> line.state >> line.parent;
  std::string skipped;
  for (int i = 0; i < 9; ++i) rest >> skipped;
  long user_ticks = 0;
  long kernel_ticks = 0;
  rest >> user_ticks >> kernel_ticks;
  line.cpu_time = std::chrono::milliseconds((user_ticks + kernel_ticks) * 1000 / sysconf(_SC_CLK_TCK));
  return line;
}

inline std::vector<ProcessLine> children_of(pid_t parent) {
  std::vector<ProcessLine> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t id = std::atoi(entry.path().filename().c_str());
    if (id <= 0) continue;
    const ProcessLine line = process_line(id);
    if (line.parent == parent && line.state != 'X') found.push_back(line);
  }
  return found;
}

inline int zombies_of(pid_t parent) {
  int count = 0;
  for (const ProcessLine& line : children_of(parent)) count += line.state == 'Z' ? 1 : 0;
  return count;
}

/// Returns the number of threads of this process with this name.
inline int threads_named(const std::string& name) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    found += read_text(entry.path().string() + "/comm") == name + "\n" ? 1 : 0;
  }
  return found;
}

}  // namespace kiln::test
