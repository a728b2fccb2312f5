#pragma once

#include <string>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

#include "bench/kernels.hpp"
#include "compile/nvrtc_library.hpp"

namespace kiln::bench {

/// The cubin of a unit by NVRTC alone, with the options that kiln gives it.
Result<std::string> compile_with_bare_nvrtc(const NvrtcLibrary& nvrtc, const Unit& unit,
                                            const std::string& architecture = kArchitecture);

}  // namespace kiln::bench
