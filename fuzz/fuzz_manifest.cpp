// Any bytes as a kiln.toml. No file is read.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "session/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto manifest = kiln::parse_manifest({reinterpret_cast<const char*>(data), size}, "/folder");
  if (!manifest) {
    kiln::fuzz::require(manifest.error().message.starts_with("line "), "what is wrong has a place");
    return 0;
  }
  std::set<std::string> names;
  for (const kiln::Manifest::Member& member : manifest->members) {
    kiln::fuzz::require(names.insert(member.name).second, "no two members have the same name");
    kiln::fuzz::require(member.spec ? member.spec->check().ok() : member.source.file.starts_with('/'),
                        "a member is a spec that passes its check, or a file with its folder");
  }
  return 0;
}
