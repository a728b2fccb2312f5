// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <kiln/target.hpp>

namespace kiln {

/// Properties of a device of this machine, for display and for selecting targets.
struct DeviceInfo {
  std::string name;
  Target target;             ///< target to compile for
  unsigned units = 0;        ///< number of multiprocessors or compute units
  std::uint64_t memory = 0;  ///< bytes
  /// Ratio of single-precision to double-precision throughput: 2, 32, 64. 0 if the device has no double precision or
  /// the driver does not report the ratio.
  unsigned fp64_ratio = 0;
  bool is_cpu = false;  ///< true if the device is a CPU, as with PoCL
};

}  // namespace kiln
