// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/cccl_headers.hpp"

#include <iterator>

namespace kiln {
namespace {

using cccl::Algorithm;

enum class Set { Plain, Device, Scan, None };

Set set_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::Reduce:
    case Algorithm::ThreeWayPartition:
    case Algorithm::MergeSort:
    case Algorithm::UniqueByKey: return Set::Plain;
    case Algorithm::Scan: return Set::Scan;
    case Algorithm::SegmentedReduce:
    case Algorithm::BinarySearch:
    case Algorithm::RadixSort:
    case Algorithm::UnaryTransform:
    case Algorithm::BinaryTransform:
    case Algorithm::Histogram:
    case Algorithm::SegmentedSort: return Set::Device;
    case Algorithm::For: break;  // its language version differs from all others
  }
  return Set::None;
}

constexpr const char* kPlain[] = {
    "cub/device/dispatch/tuning/tuning_reduce.cuh",
    "cub/device/dispatch/kernels/kernel_reduce.cuh",
    "cub/device/dispatch/tuning/tuning_three_way_partition.cuh",
    "cub/device/dispatch/kernels/kernel_three_way_partition.cuh",
    "cub/device/dispatch/tuning/tuning_merge_sort.cuh",
    "cub/device/dispatch/kernels/kernel_merge_sort.cuh",
    "cub/util_type.cuh",
    "cub/device/dispatch/tuning/tuning_unique_by_key.cuh",
    "cub/device/dispatch/kernels/kernel_scan.cuh",
    "cub/device/dispatch/kernels/kernel_unique_by_key.cuh",
    "cub/agent/single_pass_scan_operators.cuh",
};
constexpr const char* kDevice[] = {
    "cub/block/block_reduce.cuh",
    "cub/device/dispatch/tuning/tuning_segmented_reduce.cuh",
    "cub/device/dispatch/kernels/kernel_segmented_reduce.cuh",
    "cub/device/dispatch/tuning/tuning_transform.cuh",
    "cub/device/dispatch/kernels/kernel_transform.cuh",
    "cub/detail/binary_search_helpers.cuh",
    "cuda/std/__cstring/memcpy.h",
    "cub/device/dispatch/tuning/tuning_radix_sort.cuh",
    "cub/device/dispatch/kernels/kernel_radix_sort.cuh",
    "cub/agent/single_pass_scan_operators.cuh",
};
constexpr const char* kScan[] = {
    "cub/device/dispatch/tuning/tuning_scan.cuh",  "cub/block/block_scan.cuh",
    "cub/device/dispatch/kernels/kernel_scan.cuh", "cub/util_type.cuh",
    "cub/agent/single_pass_scan_operators.cuh",
};
// These come last. NVRTC creates no precompiled header for some orders and does not report why (for example with
// cub/util_type.cuh at the end).
constexpr const char* kCommon[] = {"cuda/std/type_traits", "cuda/std/__cccl/extended_data_types.h", "cuda_fp16.h",
                                   "cuda_bf16.h", "cuda/std/functional"};

// Returns true for capabilities 10.x and 11.x, which have their own scan program. The library disables it on all
// others.
bool scans_at_warp_speed(const Target& target) {
  const std::string& name = target.architecture;
  return name.size() == 6 && (name.starts_with("sm_10") || name.starts_with("sm_11"));
}

}  // namespace

CcclHeaders cccl_headers(Algorithm algorithm, const Target& target) {
  CcclHeaders headers;
  const Set set = set_of(algorithm);
  if (set == Set::None) return headers;
  headers.options = {"-rdc=true", "-dlto", "-DCUB_DISABLE_CDP", "-std=c++20"};
  if (set != Set::Plain) headers.options.emplace_back("-default-device");
  // NVRTC compares macros in order. Scans define this macro before the last one and therefore share headers only with
  // scans.
  if (set == Set::Scan && !scans_at_warp_speed(target)) headers.options.emplace_back("-DCCCL_DISABLE_WARPSPEED_SCAN");
  headers.options.emplace_back("-D__NV_NO_VECTOR_DEPRECATION_DIAG");
  const auto add = [&](const auto& names) {
    headers.includes.insert(headers.includes.end(), std::begin(names), std::end(names));
  };
  if (set == Set::Plain) add(kPlain);
  if (set == Set::Device) add(kDevice);
  if (set == Set::Scan) add(kScan);
  add(kCommon);
  return headers;
}

}  // namespace kiln
