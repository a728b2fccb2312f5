// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <kiln/unit.hpp>

#include "base/codec.hpp"

namespace kiln {

/// Writes a unit with the paths of its include roots, for another process on this machine.
void write_unit(BinaryWriter& out, const Unit& unit);
/// Reads a unit. Truncated input makes `in` fail, and the unit is then invalid.
Unit read_unit(BinaryReader& in);

/// Writes the parts of a unit that its key covers: of its include roots only their number and which of them have a
/// sentinel.
void write_portable_unit(BinaryWriter& out, const Unit& unit);
/// Reads such a unit, assigns the first of `roots` to it and removes them from `roots`. Too few roots, or a mismatch in
/// sentinels, make `in` fail.
Unit read_portable_unit(BinaryReader& in, std::span<const IncludeRoot>& roots);

}  // namespace kiln
