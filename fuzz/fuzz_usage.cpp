// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/hash.hpp"
#include "cache/usage_format.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> input(data, size);
  if (const auto scanned_at = kiln::decode_usage_head(input)) {
    const std::string head(reinterpret_cast<const char*>(data), kiln::kUsageHead);
    kiln::fuzz::require(kiln::encode_usage_head(*scanned_at) == head, "a journal header round-trips");
  }
  (void)kiln::sum_of_usage(input);
  if (size >= 8) {
    std::int64_t bytes;
    std::copy(data, data + 8, reinterpret_cast<std::uint8_t*>(&bytes));
    const std::string record = kiln::encode_usage_record(bytes);
    kiln::fuzz::require(kiln::sum_of_usage(kiln::as_bytes(record + record.substr(0, size % 16))) == bytes,
                        "a record round-trips");
  }
  return 0;
}
