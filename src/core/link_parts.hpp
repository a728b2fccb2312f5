#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// A part of a unit of kind "link", as its source has it. Its texts are views of that source.
struct LinkPartView {
  Form form = Form::LtoIr;
  std::string_view name;
  std::string_view bytes;
  std::optional<Unit> unit;  ///< instead of name and bytes; with its include roots
};

/// The canonical source of a unit of kind "link". `docs/linking.md` has the grammar.
std::string encode_link_parts(const std::vector<LinkPart>& parts);

/// What a unit of kind "link" is made of. Code::InvalidArgument where it is no such unit, its source is not one that
/// this kiln writes, or it was given what a link has no use for. The unit must outlive the views.
Result<std::vector<LinkPartView>> decode_link_parts(const Unit& link);

}  // namespace kiln
