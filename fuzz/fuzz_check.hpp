// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace kiln::fuzz {

/// Aborts unless an invariant holds. The invariants hold for any input: for example, a parser must not change what it
/// accepted.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "invariant violated: %s\n", what);
  std::abort();
}

/// Checks an input as it is, and again with correct checksums, which a fuzzer does not find by chance.
template <class Check, class Sentinel>
int as_it_is_and_sealed(const std::uint8_t* data, std::size_t size, const Check& check, const Sentinel& sealed) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check(input);
  check(sealed(input));
  return 0;
}

}  // namespace kiln::fuzz
