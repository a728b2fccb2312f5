// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <kiln/runtime/memory.hpp>

#include "backends/cuda/cuda_api.hpp"

namespace kiln::runtime {

/// The driver with the additional functions that memory tiers need.
struct MemoryDriver {
  std::shared_ptr<const CudaApi> api;
  cuda::MemoryFunctions memory;
};

/// The source of memory for one device: a pool, managed or plain memory. Does no accounting. A context of the device
/// must be current on the calling thread, except for `trim` and the destructor. Thread-safe.
class MemorySource {
 public:
  virtual ~MemorySource() = default;

  virtual cuda::DriverResult allocate(cuda::DevicePointer& memory, std::size_t bytes, cuda::Stream stream) = 0;
  virtual cuda::DriverResult release(cuda::DevicePointer memory, cuda::Stream stream) = 0;
  /// Returns true if `release` is ordered on the stream. Otherwise it frees immediately and the caller must synchronize
  /// first.
  virtual bool is_stream_ordered() const = 0;
  /// Returns the name of the driver function that `allocate` calls, for messages.
  virtual const char* driver_function() const = 0;
  /// Releases unused memory and returns the number of bytes.
  virtual Result<std::uint64_t> trim() { return std::uint64_t{0}; }
};

/// Opens the memory source of a tier. A context of the device must be current. Returns an error if the device or its
/// driver does not support the tier.
Result<std::shared_ptr<MemorySource>> open_source(MemoryTier tier, const MemoryDriver& driver,
                                                  cuda::DeviceNumber device, std::uint64_t limit);

}  // namespace kiln::runtime
