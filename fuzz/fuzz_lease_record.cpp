// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "remote/lease_record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto row = kiln::LeaseRecord::parse(input);
  if (!row) return 0;
  kiln::fuzz::require(row->text() == input, "a lease round-trips");
  kiln::fuzz::require(kiln::LeaseRecord::is_valid_owner(row->owner), "the owner of a lease is valid");
  kiln::fuzz::require(input.size() <= kiln::LeaseRecord::kMaxBytes, "a lease is at most kMostBytes long");
  return 0;
}
