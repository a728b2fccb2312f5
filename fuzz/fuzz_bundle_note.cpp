// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bundle/embedded.hpp"
#include "fuzz_check.hpp"

// The first byte is the alignment of the segment, the rest is the segment.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // A copy of exactly this size, so that the sanitizer detects a read past the end.
  const std::vector<std::uint8_t> segment(data + 1, data + size);
  const std::vector<kiln::BundleNote> notes = kiln::parse_bundle_notes(segment, data[0]);
  kiln::fuzz::require(notes.size() <= segment.size() / 36, "each bundle has its own note");
  return 0;
}
