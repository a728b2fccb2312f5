// Any bytes as a recipe, and as an artifact's metadata: what a worker and its program send each other.
#include <cstddef>
#include <cstdint>

#include "core/recipe.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto recipe = kiln::decode_recipe(input)) {
    const std::string once = encode(*recipe);
    const auto again = kiln::decode_recipe(once);
    kiln::fuzz::require(again.ok() && encode(*again) == once, "a recipe is read and written alike");
  }
  if (const auto artifact = kiln::decode_metadata(input)) {
    kiln::fuzz::require(kiln::decode_metadata(encode_metadata(*artifact)).ok(), "metadata can be read again");
  }
  return 0;
}
