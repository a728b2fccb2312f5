// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/cccl_blob.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string blob(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> kernels = {"_Z4scanv", ""};
  const auto read = kiln::read_cccl_blob(blob, kernels);
  if (!read) return 0;
  const auto within = [&](std::string_view part) {
    return part.empty() || (part.data() >= blob.data() && part.data() + part.size() <= blob.data() + blob.size());
  };
  kiln::fuzz::require(read->capability > 0 && within(read->code), "the code is a part of the blob");
  for (const std::string_view kernel : read->kernels)
    kiln::fuzz::require(within(kernel), "a name is a part of the blob");
  kiln::fuzz::require(read->policy_bytes <= size, "the policies are parts of the blob");
  return 0;
}
