// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a kiln.toml. Reads no file.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "session/config/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto manifest = kiln::parse_manifest({reinterpret_cast<const char*>(data), size}, "/folder");
  if (!manifest) {
    kiln::fuzz::require(manifest.error().message.starts_with("line "), "an error has a location");
    return 0;
  }
  std::set<std::string> names;
  for (const kiln::Manifest::UnitEntry& member : manifest->members) {
    kiln::fuzz::require(names.insert(member.name).second, "no two members have the same name");
    kiln::fuzz::require(member.spec ? member.spec->validate().has_value() : member.source.file.starts_with('/'),
                        "a member is a valid spec, or a file with its directory");
    for (const auto& [entry, source] : member.source.instances) {
      kiln::fuzz::require(!entry.empty() && source.find('\0') == std::string::npos,
                          "an instance has an entry and text");
    }
  }
  return 0;
}
