#include <cstddef>
#include <cstdint>

#include "base/codec.hpp"
#include "base/hash.hpp"
#include "fuzz_check.hpp"
#include "store/history_format.hpp"

namespace {

void check(const std::string& file) {
  if (const auto history = kiln::decode_history(file)) {
    kiln::fuzz::require(kiln::encode(*history) == file, "a history is read and written alike");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string input(reinterpret_cast<const char*>(data), size);
  check(input);
  if (input.size() >= 20) {
    kiln::Writer sum;
    sum.u64(kiln::xxh3(kiln::as_bytes(std::string_view(input).substr(20))));
    check(input.replace(12, 8, sum.bytes()));
  }
  return 0;
}
