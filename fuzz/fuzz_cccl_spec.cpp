// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as the text of a CCCL spec.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <kiln/cccl.hpp>

#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto spec = kiln::cccl::Spec::parse({reinterpret_cast<const char*>(data), size});
  if (!spec) return 0;
  kiln::fuzz::require(spec->validate().has_value(), "a parsed spec passes its check");
  const std::string text = spec->text();
  const auto again = kiln::cccl::Spec::parse(text);
  kiln::fuzz::require(again.has_value(), "the canonical text can be parsed");
  kiln::fuzz::require(again->text() == text, "the canonical text is stable");
  kiln::fuzz::require(again->unit().key() == spec->unit().key(), "equal specs have equal keys");
  return 0;
}
