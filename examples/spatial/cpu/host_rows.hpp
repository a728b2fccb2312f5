// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spatial/operands.hpp"

namespace spatial::cpu {

/// Returns an error if an operand is on a device. The CPU variants need host rows. A dispatch guarantees this, but a
/// direct caller might not.
template <class... Operands>
kiln::Status on_host(const Operands&... operands) {
  if ((... && (operands.host() != nullptr))) return {};
  return kiln::Error{kiln::Code::InvalidArgument, "the rows are on a device; materialize them first", {}};
}

}  // namespace spatial::cpu
