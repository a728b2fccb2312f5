// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

namespace kiln::test {

/// Sets an environment variable during its lifetime and restores it afterwards. Not thread-safe: no other thread may
/// read the environment.
class ScopedEnv {
 public:
  /// Null unsets the variable.
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) {
      was_set_ = true;
      before_ = before;
    }
    set(value);
  }
  ~ScopedEnv() { set(was_set_ ? before_.c_str() : nullptr); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

  void set(const char* value) {
    if (value != nullptr) {
      setenv(name_.c_str(), value, 1);
    } else {
      unsetenv(name_.c_str());
    }
  }

 private:
  const std::string name_;
  bool was_set_ = false;
  std::string before_;
};

}  // namespace kiln::test
