// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "backends/command/depfile.hpp"
#include "backends/command/include_scan.hpp"
#include "fuzz_check.hpp"

namespace {

// Escapes a name as compilers do.
std::string escaped(const std::string& name) {
  std::string text;
  std::size_t backslashes = 0;
  for (const char c : name) {
    if (c == ' ' || c == '#') text.append(backslashes + 1, '\\');
    if (c == '$') text += '$';
    text += c;
    backslashes = c == '\\' ? backslashes + 1 : 0;
  }
  return text;
}

bool can_be_written(const std::string& name) {
  return name.find_first_of("\t\r\n") == std::string::npos && name.find("\\:") == std::string::npos &&
         !name.ends_with('\\');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto names = kiln::parse_depfile(text)) {
    std::string written = "o:";
    std::vector<std::string> expected;
    for (const std::string& name : *names) {
      kiln::fuzz::require(!name.empty(), "a dependency has a name");
      if (!can_be_written(name)) continue;
      written += " " + escaped(name);
      expected.push_back(name);
    }
    const auto again = kiln::parse_depfile(written);
    kiln::fuzz::require(again.has_value() && *again == expected, "names round-trip");
  }
  for (const auto& name : kiln::scan_includes(text).names) {
    kiln::fuzz::require(!name.name.empty() && text.find(name.name) != std::string::npos,
                        "an included name occurs in the text");
  }
  return 0;
}
