// SPDX-License-Identifier: Apache-2.0
// Packed entries of other systems: decoding accepts exactly what encoding writes, and no path leaves the entry.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "apps/kiln/jit/entry_pack.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto pack = kiln::jit::decode_pack(input);
  if (!pack) return 0;
  kiln::fuzz::require(kiln::jit::encode_pack(*pack) == input, "a packed entry round-trips");
  for (const auto& file : pack->files) kiln::fuzz::require(kiln::jit::is_safe_path(file.path), "paths are safe");
  return 0;
}
