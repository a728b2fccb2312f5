// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdio>

#include <kiln/session.hpp>

#include "base/process/dynamic_library.hpp"

// Helpers of the programs that benchmarks start and that print their results.
namespace kiln::bench {

/// Prints the error and returns the exit code of the program.
inline int warn(const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.message.c_str(), error.log.c_str());
  return 1;
}

inline bool nvrtc_is_open() {
  const auto mapped = mapped_libraries();
  return std::any_of(mapped.begin(), mapped.end(),
                     [](const std::string& path) { return path.find("libnvrtc") != std::string::npos; });
}

/// Returns the number of compiled and cached units; an artifact can be available before it is counted.
inline SessionStatus final_status(const Session& session) {
  SessionStatus status = session.status();
  while (status.pending != 0) status = session.status();
  return status;
}

}  // namespace kiln::bench
