#pragma once

#include <string>
#include <vector>

#include <kiln/cccl.hpp>

namespace kiln {

/// What the program is called that precompiles the headers of CCCL's algorithms.
constexpr const char* kCcclHeadersProgram = "kiln-headers";

/// What the CCCL library's programs have in common, so that they can share precompiled headers: which options it gives
/// NVRTC, and which headers its sources include. Told from the releases that kiln knows; where it is wrong NVRTC does
/// not take the precompiled header and compiles in full.
struct CcclHeaders {
  std::vector<std::string> options;   ///< the library's own, in its order, but for architecture and folders
  std::vector<std::string> includes;  ///< those of all algorithms that have these options; empty: nothing to share
};
CcclHeaders cccl_headers(cccl::Algorithm algorithm, const Target& target);

}  // namespace kiln
