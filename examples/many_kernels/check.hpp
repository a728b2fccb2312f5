#pragma once

#include <string>

#include "semiring.hpp"

namespace semiring {

enum class Outcome {
  Right,
  Wrong,
  Untouched,  ///< the output is as it was before the launch: the device ran nothing
};

/// Runs one kernel of the family on made-up matrices and compares every element with what a plain loop on the host
/// makes of them. Throws kiln::ResultError where something cannot be done at all.
Outcome check(Semiring& library, const kiln::Stream& stream, const std::string& kernel);

}  // namespace semiring
