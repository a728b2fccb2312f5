// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <kiln/target.hpp>

namespace kiln {

/// Returns how well code for target `made` serves target `wanted`: by CUDA's compatibility rules for machine code, by
/// equality for all other forms. Returns nothing if it cannot run; a higher rank is better, and an equal target ranks
/// highest. docs/how-to/ship-bundles.md lists the rules.
std::optional<unsigned> compatibility_rank(const Target& made, const Target& wanted);

}  // namespace kiln
