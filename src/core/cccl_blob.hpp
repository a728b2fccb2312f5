#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// The parts of the CCCL library's serialized build result that kiln reads (docs/cccl-format.md). The views point into
/// the blob.
struct CcclBlob {
  int capability = 0;                     ///< 90 for sm_90
  std::string_view code;                  ///< the cubin
  std::uint64_t policy_bytes = 0;         ///< total size of the runtime policies
  std::vector<std::string_view> kernels;  ///< lowered names, in the order in which the library looks them up
};

/// Reads a blob. `kernels` are the symbols in its cubin: they tell the names from the policies. Returns Code::Corrupt
/// if the blob has another layout or a length exceeds it.
Result<CcclBlob> read_cccl_blob(std::string_view blob, const std::vector<std::string>& kernels);

}  // namespace kiln
