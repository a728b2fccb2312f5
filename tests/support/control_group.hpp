#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "support/files.hpp"

namespace kiln::test {

/// A control group of version 1 below the one that this process is in, for a child to enter: it keeps to
/// the bounds that hold here already. Nothing works where none can be made.
class GroupBelow {
 public:
  explicit GroupBelow(const std::string& controller) {
    const std::string text = slurp("/proc/self/cgroup");
    const std::size_t at = text.find(":" + controller + ":/");
    if (at == std::string::npos) return;
    const std::size_t start = at + controller.size() + 2;
    const std::string here = "/sys/fs/cgroup/" + controller + text.substr(start, text.find('\n', start) - start);
    folder_ = here + "/kiln-test-" + std::to_string(getpid());
    if (mkdir(folder_.c_str(), 0755) != 0) folder_.clear();
  }
  ~GroupBelow() {
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  GroupBelow(const GroupBelow&) = delete;

  bool set(const char* file, const std::string& value) const {
    std::ofstream out(folder_ + "/" + file);
    return !folder_.empty() && static_cast<bool>(out << value << std::flush);
  }
  /// What a file of it says; empty where there is none.
  std::string get(const char* file) const { return slurp(folder_ + "/" + file); }
  bool enter() const { return set("cgroup.procs", std::to_string(getpid())); }

 private:
  std::string folder_;
};

}  // namespace kiln::test
