#pragma once

#include <string>

#include "base/files.hpp"

namespace kiln {

/// While it lives, what the process writes to stdout and stderr is kept here instead: libraries print. Only for a
/// process that has no other use for them, and one thread.
class OutputCapture {
 public:
  OutputCapture();
  ~OutputCapture();
  OutputCapture(const OutputCapture&) = delete;
  OutputCapture& operator=(const OutputCapture&) = delete;

  /// What was written so far, at most a megabyte of it.
  std::string text() const;

 private:
  const Fd file_;
  Fd saved_[2];
};

}  // namespace kiln
