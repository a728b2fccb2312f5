// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a listing, an error and a time of an S3 server.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "remote/s3/s3_error.hpp"
#include "remote/s3/s3_listing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto failure = kiln::parse_s3_failure(403, text);
  kiln::fuzz::require(failure.code.size() <= 64 && failure.region.size() <= 64, "the words of an error are short");
  kiln::fuzz::require(kiln::parse_utc(text) >= std::chrono::nanoseconds(0), "a time is not older than 1970");
  const auto page = kiln::parse_s3_listing(text, "k/ac/");
  if (!page) return 0;
  // A key contains a name of 64 digits.
  kiln::fuzz::require(page->objects.size() * 64 <= size, "the rows fit into the text");
  kiln::fuzz::require(page->last_key.size() <= size, "the last key fits into the text");
  return 0;
}
