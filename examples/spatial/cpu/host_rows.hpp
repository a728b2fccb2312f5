#pragma once

#include "spatial/operands.hpp"

namespace spatial::cpu {

/// The processor's variants take rows of the host. A decision never gives them others; whoever calls one by himself
/// might.
template <class... Operands>
kiln::Status on_host(const Operands&... operands) {
  if ((... && (operands.host() != nullptr))) return {};
  return kiln::Error{kiln::Code::InvalidArgument, "the rows are on a device; materialise them first", {}};
}

}  // namespace spatial::cpu
