#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace kiln::fuzz {

/// What must hold whatever the input: a parser that accepted something must not have changed it.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// Checks an input as it is, and with its checksums made right, which a fuzzer does not find by chance.
template <class Check, class Seal>
int as_it_is_and_sealed(const std::uint8_t* data, std::size_t size, const Check& check, const Seal& sealed) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check(input);
  check(sealed(input));
  return 0;
}

}  // namespace kiln::fuzz
