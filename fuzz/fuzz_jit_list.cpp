// SPDX-License-Identifier: Apache-2.0
// Lists of entries of other systems: decoding accepts exactly what encoding writes, and no path leaves the root.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "apps/kiln/jit/entry_list.hpp"
#include "apps/kiln/jit/path_pattern.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto list = kiln::jit::EntryList::decode(input);
  if (!list) return 0;
  kiln::fuzz::require(list->encode() == input, "a list round-trips");
  for (const auto& line : list->lines) {
    kiln::fuzz::require(kiln::jit::is_safe_path(line.path), "paths are safe");
    kiln::fuzz::require(list->find(line.path) == &line, "each path is found");
  }
  return 0;
}
