// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace kiln::bench {

/// Returns a resolver whose functions return at once, so that only the engine is measured.
ResolverSource& instant_resolver();

/// Returns compile requests of units without a computed hash, each with its own source of about this size.
std::vector<CompileRequest> unseen_orders(std::size_t count, std::size_t source_size);

/// Waits until nothing is queued or running; returns false after ten seconds.
bool wait_until_idle(const Engine& engine);

}  // namespace kiln::bench
