// Any bytes as a calibration.
#include <cstddef>
#include <cstdint>
#include <string>

#include <kiln/runtime/calibration.hpp>

#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using kiln::fuzz::require;
  const auto read = kiln::runtime::Calibration::parse({reinterpret_cast<const char*>(data), size});
  if (!read) {
    require(!read.error().message.empty(), "a refusal says why");
    return 0;
  }
  const std::string text = read->text();
  // As kiln writes them numbers may be longer than they came.
  if (text.size() > (1 << 20)) return 0;
  const auto again = kiln::runtime::Calibration::parse(text);
  require(again.ok(), "what kiln writes, it reads");
  require(again->text() == text, "and it says the same");
  for (const auto& operation : read->operations) {
    for (const auto& [backend, rows] : operation.rows) {
      require(again->crossover(operation.operation, backend) == rows, "no crossover is lost");
    }
  }
  return 0;
}
