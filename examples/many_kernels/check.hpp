// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "semiring.hpp"

namespace semiring {

enum class Outcome {
  Right,
  Wrong,
  Untouched,  ///< the output is unchanged: the device did not run the kernel
};

/// Runs one kernel of the family on generated matrices and compares every element with the result of a plain loop on
/// the host. Throws kiln::ResultError if an operation fails.
Outcome check(Semiring& library, const kiln::Stream& stream, const std::string& kernel);

}  // namespace semiring
