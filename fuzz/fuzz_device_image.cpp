#include <cstddef>
#include <cstdint>
#include <string>

#include "device/pocl_binary.hpp"
#include "fuzz_check.hpp"
#include "vendor/cubin.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Of its own, so that the sanitizer sees a read past its end.
  const std::string input(reinterpret_cast<const char*>(data), size);
  kiln::fuzz::require(kiln::check_cubin(input).ok() == kiln::read_cubin(input).ok(), "what is whole can be read");
  if (!kiln::check_pocl_binary(input)) return 0;
  kiln::fuzz::require(!kiln::check_pocl_binary(input.substr(0, size - 1)), "what is whole has no byte too many");
  const std::string moved = kiln::with_pocl_folder(input, "another");
  kiln::fuzz::require(kiln::check_pocl_binary(moved).ok(), "a binary stays whole in another folder");
  kiln::fuzz::require(moved.size() == size, "and as long as it was");
  return 0;
}
