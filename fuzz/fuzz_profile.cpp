// Any bytes as a profile.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "bundle/profile.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kiln::Profile profile = kiln::parse_profile({reinterpret_cast<const char*>(data), size});
  kiln::fuzz::require(profile.asked.size() <= profile.lines, "each thing is there once");
  std::string again;
  for (const kiln::Asked& asked : profile.asked) {
    const std::string line = kiln::profile_line(asked);
    kiln::fuzz::require(line.find('\n') == line.size() - 1, "whatever the names, it is one line");
    // What came in a line of the longest size may be longer as kiln writes it.
    if (line.size() < 60'000) again += line;
  }
  const kiln::Profile second = kiln::parse_profile(again);
  kiln::fuzz::require(second.not_understood == 0, "what kiln writes, it reads");
  return 0;
}
