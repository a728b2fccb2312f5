#pragma once

#include <algorithm>
#include <cstdio>

#include <kiln/session.hpp>

#include "base/dynamic_library.hpp"

// What the programs have in common that benchmarks start and that tell what they did.
namespace kiln::bench {

/// Says what went wrong; the program ends with what it returns.
inline int complain(const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.message.c_str(), error.log.c_str());
  return 1;
}

inline bool nvrtc_is_open() {
  const auto mapped = mapped_libraries();
  return std::any_of(mapped.begin(), mapped.end(),
                     [](const std::string& path) { return path.find("libnvrtc") != std::string::npos; });
}

/// How much was compiled and found; an artifact may be there before the account of it.
inline SessionStatus final_status(const Session& session) {
  SessionStatus status = session.status();
  while (status.pending != 0) status = session.status();
  return status;
}

}  // namespace kiln::bench
