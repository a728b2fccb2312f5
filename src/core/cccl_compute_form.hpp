#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "core/cccl_envelope.hpp"

namespace kiln {

/// Returns one algorithm, for the capability of each build, in the form that `cuda.compute.deserialize` reads
/// (docs/cccl-format.md). The builds have the same spec and release. Returns Code::InvalidArgument if they do not or if
/// two have the same capability, and Code::Unsupported for an algorithm that cuda.compute does not have and for a
/// release whose form kiln does not know.
Result<std::string> cuda_compute_form(const std::vector<CcclEnvelope>& builds);

}  // namespace kiln
