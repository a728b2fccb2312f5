#pragma once

#include <cstdlib>
#include <string>

namespace kiln::test {

/// An environment variable for as long as this lives; as it was after it. Not beside threads that read the environment.
class Variable {
 public:
  /// Null: not set.
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) {
      was_set_ = true;
      before_ = before;
    }
    set(value);
  }
  ~Variable() { set(was_set_ ? before_.c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

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
