// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "support/fixtures/files.hpp"

namespace kiln::test {

/// A version 1 control group below that of this process, or a version 2 group below the root, for a child to enter. The
/// limits of the parent group still apply. All operations fail if no group can be created.
class GroupBelow {
 public:
  explicit GroupBelow(const std::string& controller) {
    const std::string text = read_text("/proc/self/cgroup");
    const std::size_t at = text.find(":" + controller + ":/");
    if (at == std::string::npos) {
      directory_ = "/sys/fs/cgroup/kiln-test-" + std::to_string(getpid());
      const bool has_it = read_text("/sys/fs/cgroup/cgroup.subtree_control").find(controller) != std::string::npos;
      if (!has_it || mkdir(directory_.c_str(), 0755) != 0) directory_.clear();
      return;
    }
    const std::size_t start = at + controller.size() + 2;
    const std::string here = "/sys/fs/cgroup/" + controller + text.substr(start, text.find('\n', start) - start);
    directory_ = here + "/kiln-test-" + std::to_string(getpid());
    if (mkdir(directory_.c_str(), 0755) != 0) directory_.clear();
  }
  ~GroupBelow() {
    if (!directory_.empty()) rmdir(directory_.c_str());
  }
  GroupBelow(const GroupBelow&) = delete;

  bool set(const char* file, const std::string& value) const {
    std::ofstream out(directory_ + "/" + file);
    return !directory_.empty() && static_cast<bool>(out << value << std::flush);
  }
  /// Returns the content of a control file, or an empty string if it does not exist.
  std::string get(const char* file) const { return read_text(directory_ + "/" + file); }
  bool enter() const { return set("cgroup.procs", std::to_string(getpid())); }

 private:
  std::string directory_;
};

}  // namespace kiln::test
