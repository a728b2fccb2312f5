#pragma once

#include <string>

#include <kiln/runtime/calibration.hpp>

namespace kiln::cli {

/// What was measured of an operation, for people: the crossovers, a row per size, the longest stages.
std::string calibration_text(const runtime::Crossovers& operation);

/// `12,345`
std::string count_text(std::uint64_t count);

}  // namespace kiln::cli
