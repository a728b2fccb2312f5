#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// A decoded part of a unit of kind "link". Its texts are views of the unit's source.
struct LinkPartView {
  Form form = Form::LtoIr;
  std::string_view name;
  std::string_view bytes;
  std::optional<Unit> unit;  ///< instead of `name` and `bytes`, with its include roots
};

/// Returns the canonical source of a unit of kind "link" (docs/linking.md).
std::string encode_link_parts(const std::vector<LinkPart>& parts);

/// Returns the parts of a unit of kind "link". Returns Code::InvalidArgument if the unit has another kind, its source
/// has an unknown format, or it has members that a link does not use. The unit must outlive the views.
Result<std::vector<LinkPartView>> decode_link_parts(const Unit& link);

}  // namespace kiln
