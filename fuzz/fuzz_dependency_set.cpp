// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "core/dependency_set.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto dependency_set = kiln::DependencySet::decode(input)) {
    kiln::fuzz::require(dependency_set->encode() == input, "a dependency set round-trips");
  }
  return 0;
}
