// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a server's directory listing.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "remote/http/http_listing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rows = kiln::parse_listing(text);
  if (!rows) return 0;
  // A row contains a name of 64 digits.
  kiln::fuzz::require(rows->size() * 64 <= size, "the rows fit into the text");
  for (const auto& row : *rows) {
    kiln::fuzz::require(row.modified >= std::chrono::nanoseconds(0), "a file is not older than 1970");
  }
  return 0;
}
