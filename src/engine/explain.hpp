// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/explanation.hpp>

#include "engine/resolver.hpp"

namespace kiln {

/// Explains why a recipe is a miss: finds the nearest earlier build in the history and what differs from it. It reads
/// the history and, if files differ, the files. It emits no event.
Explanation explain_miss(const Recipe& recipe, const Resolver::Params& params, const RequestContext& context);

/// Looks up the recipe and, on a miss, compares it with every earlier build of the unit (by kind and name) in the
/// history.
Explanation explain(const Recipe& recipe, const Resolver::Params& params, const RequestContext& context);

}  // namespace kiln
