#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "warm/engine.hpp"

namespace kiln::bench {

/// What an engine needs of a world in which every answer is there at once: what is left to measure is the engine.
Engine::Parts instant_parts();

/// Orders of units that nobody has hashed, each with a source of its own of about this size.
std::vector<Order> unseen_orders(std::size_t count, std::size_t source_size);

/// Until nothing is queued or running; false when that takes longer than ten seconds.
bool wait_until_idle(const Engine& engine);

}  // namespace kiln::bench
