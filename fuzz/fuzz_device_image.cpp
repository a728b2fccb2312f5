// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/cuda/cubin.hpp"
#include "backends/opencl/pocl_binary.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy, so that the sanitizer detects a read past its end.
  const std::string input(reinterpret_cast<const char*>(data), size);
  kiln::fuzz::require(kiln::check_cubin(input).has_value() == kiln::read_cubin(input).has_value(),
                      "an intact cubin can be read");
  if (!kiln::check_pocl_binary(input)) return 0;
  kiln::fuzz::require(!kiln::check_pocl_binary(input.substr(0, size - 1)), "an intact binary has no extra byte");
  const std::string moved = kiln::with_pocl_directory(input, "another");
  kiln::fuzz::require(kiln::check_pocl_binary(moved).has_value(), "a binary stays intact in another directory");
  kiln::fuzz::require(moved.size() == size, "relocation keeps the size");
  return 0;
}
