// SPDX-License-Identifier: Apache-2.0
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

// The source of a unit of kind "link". Numbers are little-endian; `text` is a u32 and that many bytes.
// clang-format off
//   source = version u8 = 1  count u32  part…
//   part   = 1 u8 cubin  | 2 u8 PTX | 3 u8 LTO-IR,  then  name text  size u64  bytes
//          | 0 u8 unit,  then  kind text  name text  preamble text  source text  options texts
//                              roots: u32, that many u8 (1: it has a sentinel)   the paths are in the link's own roots
//                              headers: u32, that many (name text  content text)
//                              entries texts
//   texts  = u32, that many text
// clang-format on

/// Returns the canonical source of a unit of kind "link".
std::string encode_link_parts(const std::vector<LinkPart>& parts);

/// Returns the parts of a unit of kind "link". Returns Code::InvalidArgument if the unit has another kind, its source
/// has an unknown format, or it has members that a link does not use. The unit must outlive the views.
Result<std::vector<LinkPartView>> decode_link_parts(const Unit& link);

}  // namespace kiln
