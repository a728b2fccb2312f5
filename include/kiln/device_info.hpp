#pragma once

#include <cstdint>
#include <string>

#include <kiln/target.hpp>

namespace kiln {

/// A device of this machine, for people and for choosing targets. A value.
struct DeviceInfo {
  std::string name;
  Target target;       ///< what artifacts for it are compiled for
  unsigned units = 0;  ///< multiprocessors, compute units
  std::uint64_t memory = 0;
  /// How many times slower it computes in double than in single precision: 2, 32, 64. Zero where it cannot, or where
  /// the driver does not say.
  unsigned fp64_ratio = 0;
};

}  // namespace kiln
