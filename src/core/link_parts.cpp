// SPDX-License-Identifier: Apache-2.0
#include "core/link_parts.hpp"

#include <span>
#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "core/unit_codec.hpp"

namespace kiln {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kUnit = 0;  // marks a unit instead of a form

LinkPartView read_part(BinaryReader& in, std::span<const IncludeRoot>& roots) {
  LinkPartView part;
  const std::uint8_t form = in.u8();
  if (form == kUnit) {
    part.unit = read_portable_unit(in, roots);
    return part;
  }
  if (form > static_cast<std::uint8_t>(Form::LtoIr)) in.fail();
  part.form = static_cast<Form>(form);
  part.name = in.text();
  part.bytes = in.raw(in.u64());
  return part;
}

Error unsupported_for_link(const Unit& link, const std::string& reason) {
  return make_error(Code::InvalidArgument, "unit '" + link.name() + "' cannot be linked: " + reason);
}

}  // namespace

LinkPart::LinkPart(Form form, std::string name, Bytes bytes, std::optional<Unit> unit)
    : form_(form), name_(std::move(name)), bytes_(std::move(bytes)), unit_(std::move(unit)) {}

LinkPart LinkPart::ltoir(std::string name, Bytes bytes) {
  return LinkPart(Form::LtoIr, std::move(name), std::move(bytes), std::nullopt);
}
LinkPart LinkPart::ptx(std::string name, Bytes bytes) {
  return LinkPart(Form::Ptx, std::move(name), std::move(bytes), std::nullopt);
}
LinkPart LinkPart::cubin(std::string name, Bytes bytes) {
  return LinkPart(Form::Cubin, std::move(name), std::move(bytes), std::nullopt);
}
LinkPart LinkPart::unit(Unit unit) { return LinkPart(Form::LtoIr, {}, {}, std::move(unit)); }

std::string encode_link_parts(const std::vector<LinkPart>& parts) {
  BinaryWriter out;
  out.u8(kVersion).u32(static_cast<std::uint32_t>(parts.size()));
  for (const LinkPart& part : parts) {
    if (part.as_unit() != nullptr) {
      out.u8(kUnit);
      write_portable_unit(out, *part.as_unit());
    } else {
      out.u8(static_cast<std::uint8_t>(part.form())).text(part.name());
      out.u64(part.bytes().size()).raw(part.bytes().data(), part.bytes().size());
    }
  }
  return std::move(out).bytes();
}

Result<std::vector<LinkPartView>> decode_link_parts(const Unit& link) {
  if (link.kind() != "link") return unsupported_for_link(link, "it has kind " + link.kind());
  if (!link.preamble().empty() || !link.headers().empty())
    return unsupported_for_link(link, "a link cannot have a preamble or headers");
  BinaryReader in(link.source());
  if (const std::uint8_t version = in.u8(); version != kVersion) {
    return unsupported_for_link(
        link, "its parts have format version " + std::to_string(version) + ", which this version of kiln cannot read");
  }
  std::span<const IncludeRoot> roots(link.include_roots());
  const std::uint32_t count = in.count(13);  // minimum bytes of a part
  std::vector<LinkPartView> parts;
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) parts.push_back(read_part(in, roots));
  if (!in.at_end()) return unsupported_for_link(link, "its parts are truncated or corrupt");
  if (!roots.empty()) return unsupported_for_link(link, "only the units among its parts can have include roots");
  if (parts.empty()) return unsupported_for_link(link, "it has no parts");
  return parts;
}

}  // namespace kiln
