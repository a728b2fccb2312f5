#pragma once

#include <string>
#include <vector>

#include <kiln/cccl.hpp>

namespace kiln {

/// What the CCCL library's programs have in common, so that they can share precompiled headers: which options it gives
/// NVRTC, and which headers its sources include. Told from the releases that kiln knows; where it is wrong NVRTC does
/// not take the precompiled header and compiles in full.
struct CcclHeaders {
  std::string set;                      ///< programs of one set share one; empty: none that is worth it
  std::vector<std::string> options;     ///< the library's own, in full but for architecture and folders
  std::vector<std::string> additional;  ///< what kiln adds to them so that the set is one; part of `options` too
  std::vector<std::string> includes;    ///< in their order

  /// What NVRTC is told where these come precompiled or are about to.
  std::vector<std::string> flags() const;
};
CcclHeaders cccl_headers(cccl::Algorithm algorithm);

}  // namespace kiln
