#pragma once

#include <optional>

#include <kiln/target.hpp>

namespace kiln {

/// How well code that was made for one target serves where another is wanted: by CUDA's rules of compatibility for
/// machine code, by equality for all else. Nothing where it does not; else the higher the better. An equal target is
/// the best. docs/bundles.md has the rules as a table.
std::optional<unsigned> fit(const Target& made, const Target& wanted);

}  // namespace kiln
