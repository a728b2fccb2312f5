#pragma once

#include <cstdio>
#include <cstdlib>

namespace kiln::fuzz {

/// What must hold whatever the input: a parser that accepted something must not have changed it.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace kiln::fuzz
