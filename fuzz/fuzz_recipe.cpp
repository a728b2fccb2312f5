// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a recipe and as artifact metadata, which a worker and its host program exchange.
#include <cstddef>
#include <cstdint>

#include "core/recipe.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto recipe = kiln::decode_recipe(input)) {
    const std::string once = encode(*recipe);
    const auto again = kiln::decode_recipe(once);
    kiln::fuzz::require(again.has_value() && encode(*again) == once, "a recipe round-trips");
  }
  if (const auto artifact = kiln::decode_metadata(input)) {
    kiln::fuzz::require(kiln::decode_metadata(encode_metadata(*artifact)).has_value(), "metadata round-trips");
  }
  return 0;
}
