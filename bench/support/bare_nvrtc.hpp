// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

#include "backends/cuda/nvrtc_library.hpp"
#include "bench/support/kernels.hpp"

namespace kiln::bench {

/// Compiles a unit to a cubin with NVRTC alone, with the options that kiln passes.
Result<std::string> compile_with_bare_nvrtc(const NvrtcLibrary& nvrtc, const Unit& unit,
                                            const std::string& architecture = kArchitecture);

}  // namespace kiln::bench
