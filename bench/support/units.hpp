// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

#include "bench/support/kernels.hpp"

namespace kiln::bench {

inline Unit small_unit() {
  return Unit::cuda("bench_small.cu", kSmallSource)
      .with_entry("saxpy")
      .with_entry("transpose")
      .with_entry("gravity")
      .with_entry("matmul")
      .with_entry("blur");
}

inline Unit large_unit(const std::vector<std::string>& include_roots) {
  Unit unit = Unit::cuda("bench_large.cu", kLargeSource)
                  .with_options({"-std=c++17", "-default-device", "-DCUB_DISABLE_CDP"})
                  .with_entry("scan_int");
  for (const std::string& root : include_roots) unit = unit.with_include_root(root);
  return unit;
}

/// Returns the include directories of CUB and of the toolkit. The toolkit is that of CUDA_HOME, else of the nvcc on
/// PATH.
Result<std::vector<std::string>> toolkit_include_roots();

}  // namespace kiln::bench
