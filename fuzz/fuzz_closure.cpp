#include <cstddef>
#include <cstdint>

#include "core/closure.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto closure = kiln::Closure::decode(input)) {
    kiln::fuzz::require(closure->encode() == input, "a closure is read and written alike");
  }
  return 0;
}
