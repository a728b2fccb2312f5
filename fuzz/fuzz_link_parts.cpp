// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as the source of a link unit, with and without include roots for its parts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/link_parts.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const kiln::Unit bare = kiln::Unit::of_kind("link", "fuzz", input);
  for (const kiln::Unit& link : {bare, bare.with_include_root("/a").with_include_root("/b", "/sentinel")}) {
    const auto views = kiln::decode_link_parts(link);
    if (!views) continue;
    std::vector<kiln::LinkPart> parts;
    for (const kiln::LinkPartView& view : *views) {
      const std::string name(view.name);
      const kiln::Bytes bytes = kiln::Bytes::copy_of(view.bytes);
      if (view.unit) {
        parts.push_back(kiln::LinkPart::unit(*view.unit));
      } else if (view.form == kiln::Form::LtoIr) {
        parts.push_back(kiln::LinkPart::ltoir(name, bytes));
      } else {
        parts.push_back(view.form == kiln::Form::Ptx ? kiln::LinkPart::ptx(name, bytes)
                                                     : kiln::LinkPart::cubin(name, bytes));
      }
    }
    const kiln::Unit again = kiln::Unit::link("fuzz", parts);
    kiln::fuzz::require(again == link, "a link round-trips");
  }
  return 0;
}
