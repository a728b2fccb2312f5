// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/files/files.hpp"

namespace kiln {

/// A capture of the process's stdout and stderr for the lifetime of the object, because libraries print. Only for
/// processes that do not use stdout and stderr otherwise. Not thread-safe.
class OutputCapture {
 public:
  OutputCapture();
  ~OutputCapture();
  OutputCapture(const OutputCapture&) = delete;
  OutputCapture& operator=(const OutputCapture&) = delete;

  /// Returns the output so far, at most 1 MB.
  std::string text() const;

 private:
  const Fd file_;
  Fd saved_[2];
};

}  // namespace kiln
