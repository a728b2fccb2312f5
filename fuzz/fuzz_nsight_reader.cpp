// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as an export of Nsight Systems and runs every audit rule on the result.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "analysis/audit/audit.hpp"
#include "analysis/audit/nsight_reader.hpp"
#include "fuzz_foreign_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = kiln::audit::parse_nsight({reinterpret_cast<const char*>(data), size});
  if (trace) kiln::fuzz::check_foreign_trace(*trace);
  return 0;
}
