// SPDX-License-Identifier: Apache-2.0
#include "fault/campaign/calls.hpp"

#include <cstring>
#include <map>
#include <set>

namespace kiln::test {
namespace {

const std::map<std::string, long>& numbers() {
  static const std::map<std::string, long> kNumbers = {
#include "call_numbers.inc"
  };
  return kNumbers;
}

}  // namespace

long call_number(const std::string& name) {
  const auto found = numbers().find(name);
  return found == numbers().end() ? -1 : found->second;
}

std::string call_name(long number) {
  for (const auto& [name, its] : numbers()) {
    if (its == number) return name;
  }
  return std::to_string(number);
}

int path_argument(const std::string& name) {
  static const std::set<std::string> kFirst = {"open",   "stat",  "lstat", "access",   "execve", "unlink", "mkdir",
                                               "rename", "chmod", "rmdir", "readlink", "statfs", "creat",  "symlink"};
  static const std::set<std::string> kSecond = {"openat",   "newfstatat", "statx",     "unlinkat",   "mkdirat",
                                                "renameat", "renameat2",  "faccessat", "faccessat2", "readlinkat",
                                                "fchmodat", "linkat",     "utimensat", "openat2"};
  return kFirst.contains(name) ? 0 : kSecond.contains(name) ? 1 : -1;
}

int error_number(const std::string& name) {
  for (int number = 1; number < 134; ++number) {
    const char* known = strerrorname_np(number);
    if (known != nullptr && name == known) return number;
  }
  return 0;
}

}  // namespace kiln::test
