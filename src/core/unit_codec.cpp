// SPDX-License-Identifier: Apache-2.0
#include "core/unit_codec.hpp"

#include <string>
#include <utility>
#include <vector>

namespace kiln {
namespace {

void write_front(BinaryWriter& out, const Unit& unit) {
  out.text(unit.kind()).text(unit.name()).text(unit.preamble()).text(unit.source());
  out.u32(static_cast<std::uint32_t>(unit.options().size()));
  for (const std::string& option : unit.options()) out.text(option);
  out.u32(static_cast<std::uint32_t>(unit.include_roots().size()));
}

void write_back(BinaryWriter& out, const Unit& unit) {
  out.u32(static_cast<std::uint32_t>(unit.headers().size()));
  for (const Header& header : unit.headers()) out.text(header.name).text(header.content);
  out.u32(static_cast<std::uint32_t>(unit.entries().size()));
  for (const std::string& entry : unit.entries()) out.text(entry);
}

Unit read_front(BinaryReader& in) {
  const std::string kind(in.text());
  const std::string name(in.text());
  const std::string preamble(in.text());
  Unit unit = Unit::of_kind(kind, name, std::string(in.text()));
  if (!preamble.empty()) unit = unit.with_preamble(preamble);
  std::vector<std::string> options(in.count(4));
  for (std::string& option : options) option = in.text();
  return unit.with_options(options);
}

Unit read_back(BinaryReader& in, Unit unit) {
  for (std::uint32_t i = 0, n = in.count(8); i < n; ++i) {
    std::string header(in.text());
    unit = unit.with_header(std::move(header), std::string(in.text()));
  }
  for (std::uint32_t i = 0, n = in.count(4); i < n; ++i) unit = unit.with_entry(std::string(in.text()));
  return unit;
}

}  // namespace

void write_unit(BinaryWriter& out, const Unit& unit) {
  write_front(out, unit);
  for (const IncludeRoot& root : unit.include_roots()) out.text(root.path).text(root.sentinel);
  write_back(out, unit);
}

Unit read_unit(BinaryReader& in) {
  Unit unit = read_front(in);
  for (std::uint32_t i = 0, n = in.count(8); i < n; ++i) {
    std::string path(in.text());
    unit = unit.with_include_root(std::move(path), std::string(in.text()));
  }
  return read_back(in, std::move(unit));
}

void write_portable_unit(BinaryWriter& out, const Unit& unit) {
  write_front(out, unit);
  for (const IncludeRoot& root : unit.include_roots()) out.u8(root.sentinel.empty() ? 0 : 1);
  write_back(out, unit);
}

Unit read_portable_unit(BinaryReader& in, std::span<const IncludeRoot>& roots) {
  Unit unit = read_front(in);
  const std::uint32_t count = in.count(1);
  if (count > roots.size()) in.fail();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const std::uint8_t sealed = in.u8();
    if (sealed > 1 || (sealed == 1) == roots.front().sentinel.empty()) in.fail();
    unit = unit.with_include_root(roots.front().path, roots.front().sentinel);
    roots = roots.subspan(1);
  }
  return read_back(in, std::move(unit));
}

}  // namespace kiln
