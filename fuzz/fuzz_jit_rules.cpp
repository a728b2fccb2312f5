// SPDX-License-Identifier: Apache-2.0
// Rules for other systems: any text is parsed or rejected, and a pattern accepts safe paths only.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "apps/kiln/jit/rule.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto rules = kiln::jit::parse_rules(input, "fuzz.toml");
  if (!rules) return 0;
  for (const kiln::jit::Rule& rule : *rules) {
    kiln::fuzz::require(!rule.is_entry("../x") && !rule.is_entry("/x"), "patterns match relative paths only");
    (void)rule.is_entry(std::string(255, 'a'));
    kiln::fuzz::require(rule.root_for("", "/home").starts_with("/home/"), "the root is below the home directory");
  }
  return 0;
}
