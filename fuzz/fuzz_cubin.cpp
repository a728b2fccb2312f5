// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz_check.hpp"
#include "support/fakes/cuda_driver/image.hpp"

namespace {

void check(const kiln::test::driver::Image& image) {
  for (const auto& kernel : image.kernels) {
    kiln::fuzz::require(!kernel.name.empty(), "a kernel has a name");
    for (const auto& parameter : kernel.parameters) {
      kiln::fuzz::require(parameter.offset + parameter.size <= kernel.parameter_bytes,
                          "parameters are inside the parameter block");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kiln::test::driver::Image image;
  if (read_cubin({data, size}, image)) check(image);
  (void)kiln::test::driver::cubin_extent({data, size});
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (read_ptx(text, 90, image) == kiln::cuda::DriverResult::Success) check(image);
  return 0;
}
