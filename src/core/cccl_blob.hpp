// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

// The layout, read from blobs that cuda-cccl 1.2.1 wrote for all algorithms but `for`; NVIDIA does not document it.
// clang-format off
//   blob        = magic         8 bytes   "CCCLSER1"
//                 algorithm     u32       1 reduce, 2 scan, 3 segmented_reduce, 4 transform, 5 binary_search, 6 merge_sort,
//                                         7 radix_sort, 8 segmented_sort, 9 three_way_partition, 10 unique_by_key, 11 histogram
//                 version       u32       1
//                 capability    u32       80 for sm_80
//                 fields                  depend on the algorithm; at most 109 bytes. A binary search has a transform's blob here
//                 section                 the cubin, the first section that begins with "\x7fELF"
//                 { section }             to the end: the runtime policy, and the lowered name of each kernel
//   section     = size u64, that many bytes
// clang-format on
// A section after the cubin is a name if the cubin has a kernel of this name, and otherwise a policy, of which only the
// size is known. All algorithms have one policy, a segmented sort has two.

/// The parts of the CCCL library's serialized build result that kiln reads. The views point into the blob.
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
