#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "remote/lease_row.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto row = kiln::LeaseRow::parse(input);
  if (!row) return 0;
  kiln::fuzz::require(row->text() == input, "a lease is read and written alike");
  kiln::fuzz::require(kiln::LeaseRow::may_own(row->owner), "the owner of a lease can own it");
  kiln::fuzz::require(input.size() <= kiln::LeaseRow::kMostBytes, "no lease is longer than is read of one");
  return 0;
}
