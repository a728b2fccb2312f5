// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "engine/status_format.hpp"
#include "fuzz_check.hpp"
#include "summed_file.hpp"

namespace {

void check(const std::string& file) {
  if (const auto status = kiln::decode_status(file)) {
    kiln::fuzz::require(kiln::encode(*status) == file, "a status round-trips");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return kiln::fuzz::as_it_is_and_sealed(data, size, check, kiln::fuzz::with_right_sum);
}
