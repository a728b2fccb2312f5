// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a calibration.
#include <cstddef>
#include <cstdint>
#include <string>

#include <kiln/runtime/calibration.hpp>

#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using kiln::fuzz::require;
  const auto read = kiln::runtime::Calibration::parse({reinterpret_cast<const char*>(data), size});
  if (!read) {
    require(!read.error().message.empty(), "an error has a message");
    return 0;
  }
  const std::string text = read->text();
  // The numbers that kiln writes can be longer than in the input.
  if (text.size() > (1 << 20)) return 0;
  const auto again = kiln::runtime::Calibration::parse(text);
  require(again.has_value(), "a written calibration can be read");
  require(again->text() == text, "a calibration round-trips");
  for (const auto& operation : read->operations) {
    for (const auto& [backend, rows] : operation.thresholds) {
      require(again->crossover(operation.operation, backend) == rows, "no crossover is lost");
    }
  }
  return 0;
}
