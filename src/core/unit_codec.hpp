#pragma once

#include <span>

#include <kiln/unit.hpp>

#include "base/codec.hpp"

namespace kiln {

/// Writes a unit with the places of its include roots: for another process of this machine.
void write_unit(Writer& out, const Unit& unit);
/// Reads it back. What is cut short makes `in` fail, and the unit is then of no use.
Unit read_unit(Reader& in);

/// Writes what a unit's key covers: of its include roots only how many they are and which are sealed.
void write_unit_anywhere(Writer& out, const Unit& unit);
/// Reads it back with the first of `roots` in their places, and takes those off. Roots that are too few, or of which
/// others are sealed, make `in` fail.
Unit read_unit_anywhere(Reader& in, std::span<const IncludeRoot>& roots);

}  // namespace kiln
