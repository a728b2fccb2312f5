#include "core/link_parts.hpp"

#include <span>
#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "core/unit_codec.hpp"

namespace kiln {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kUnit = 0;  // in the place of a form

LinkPartView read_part(Reader& in, std::span<const IncludeRoot>& roots) {
  LinkPartView part;
  const std::uint8_t form = in.u8();
  if (form == kUnit) {
    part.unit = read_unit_anywhere(in, roots);
    return part;
  }
  if (form > static_cast<std::uint8_t>(Form::LtoIr)) in.fail();
  part.form = static_cast<Form>(form);
  part.name = in.text();
  part.bytes = in.raw(in.u64());
  return part;
}

Error useless(const Unit& link, const std::string& why) {
  return failure(Code::InvalidArgument, "unit '" + link.name() + "' cannot be linked: " + why);
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
  Writer out;
  out.u8(kVersion).u32(static_cast<std::uint32_t>(parts.size()));
  for (const LinkPart& part : parts) {
    if (part.as_unit() != nullptr) {
      out.u8(kUnit);
      write_unit_anywhere(out, *part.as_unit());
    } else {
      out.u8(static_cast<std::uint8_t>(part.form())).text(part.name());
      out.u64(part.bytes().size()).raw(part.bytes().data(), part.bytes().size());
    }
  }
  return std::move(out).bytes();
}

Result<std::vector<LinkPartView>> decode_link_parts(const Unit& link) {
  if (link.kind() != "link") return useless(link, "it is of kind " + link.kind());
  if (!link.preamble().empty() || !link.headers().empty())
    return useless(link, "a link has no preamble and no headers");
  Reader in(link.source());
  if (const std::uint8_t version = in.u8(); version != kVersion) {
    return useless(link,
                   "its parts are written in version " + std::to_string(version) + ", which this kiln cannot read");
  }
  std::span<const IncludeRoot> roots(link.include_roots());
  const std::uint32_t count = in.count(13);  // a part without name and bytes takes so many
  std::vector<LinkPartView> parts;
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) parts.push_back(read_part(in, roots));
  if (!in.done()) return useless(link, "its parts are cut short or damaged");
  if (!roots.empty()) return useless(link, "include roots belong to the units that are its parts");
  if (parts.empty()) return useless(link, "it has no parts");
  return parts;
}

}  // namespace kiln
