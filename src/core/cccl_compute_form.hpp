// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "core/cccl_envelope.hpp"

namespace kiln {

// The form of `cuda.compute.serialize` in cuda-cccl 1.2.0 and 1.2.1. The release must be that of the reader.
// clang-format off
//   file        = "CCCLPYS1", release text, class text, fields, count u32, { capability u32, blob text }
//   fields      = by class, in the order of its constructor: iterator, operator, type of a value, u8 of an init or a flag
//   iterator    = u8 1 for a pointer, alignment u32, type, operator advance, operator dereference
//   operator    = kind u32, name text, code text, "ltoir" or "cpp_source" as text, alignment of the state u32, its size u64, u32 0
//   type        = size u64, alignment u64, scalar u32
//   text        = size u64, that many bytes
// clang-format on

/// Returns one algorithm, for the capability of each build, in the form that `cuda.compute.deserialize` reads. The
/// builds have the same spec and release. Returns Code::InvalidArgument if they do not or if two have the same
/// capability, and Code::Unsupported for an algorithm that cuda.compute does not have and for a release whose form kiln
/// does not know.
Result<std::string> cuda_compute_form(const std::vector<CcclEnvelope>& builds);

}  // namespace kiln
