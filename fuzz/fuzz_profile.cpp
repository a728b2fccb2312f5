// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a profile.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "bundle/profile.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kiln::Profile profile = kiln::parse_profile({reinterpret_cast<const char*>(data), size});
  kiln::fuzz::require(profile.entries.size() <= profile.lines, "entries are unique");
  std::string again;
  for (const kiln::ProfileEntry& asked : profile.entries) {
    const std::string line = kiln::profile_line(asked);
    kiln::fuzz::require(line.find('\n') == line.size() - 1, "an entry is one line for any name");
    // A line of the maximum length can become longer when kiln writes it.
    if (line.size() < 60'000) again += line;
  }
  const kiln::Profile second = kiln::parse_profile(again);
  kiln::fuzz::require(second.skipped_lines == 0, "a written profile can be read");
  return 0;
}
