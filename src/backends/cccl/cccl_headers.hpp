// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/cccl.hpp>

namespace kiln {

/// Name of the program that precompiles the headers of CCCL algorithms.
constexpr const char* kCcclHeadersProgram = "kiln-headers";

/// The options that the CCCL library passes to NVRTC and the headers that its sources include. Programs that have these
/// in common can share precompiled headers. The values are those of the releases that kiln supports. If they are wrong,
/// NVRTC rejects the precompiled header and compiles in full.
struct CcclHeaders {
  std::vector<std::string> options;   ///< options of the library, in its order, without architecture and directories
  std::vector<std::string> includes;  ///< headers of all algorithms that have these options; empty if there is nothing
                                      ///< to share
};
CcclHeaders cccl_headers(cccl::Algorithm algorithm, const Target& target);

}  // namespace kiln
