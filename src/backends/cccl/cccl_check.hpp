// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/result.hpp>

#include "backends/cccl/cccl_library.hpp"

namespace kiln {

/// The kind of the units that check a CCCL library of an unknown release: a worker compiles such a unit and checks the
/// result. No program requests them.
constexpr const char* kCcclCheckKind = "cccl-check";
/// The compute capability that checks compile for. The expected kernels depend on it.
constexpr int kCcclCheckCapability = 80;

/// Returns the spec that checks an algorithm. Each parameter that the library shows in the names of its kernels has a
/// value of its own, so that a parameter in another place gives other names.
cccl::Spec cccl_check_spec(cccl::Algorithm algorithm);

/// Checks what a library of an unknown release compiled from `cccl_check_spec`: the build result fits, its code is for
/// the requested capability and has the expected kernels, and it survives serializing, deserializing and serializing
/// again unchanged. Returns Code::CompileFailed with the reason otherwise.
Status check_cccl_build(const std::shared_ptr<const CcclLibrary>& library, cccl::Algorithm algorithm,
                        const CcclBuild& build);

/// Returns Code::CompileFailed if no kernel has the name that the spec of the check leads to: its types, operators and
/// enumerations in the expected places. `symbols` are mangled.
Status check_cccl_kernels(cccl::Algorithm algorithm, const std::vector<std::string>& symbols);

}  // namespace kiln
