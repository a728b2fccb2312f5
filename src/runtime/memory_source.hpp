#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <kiln/runtime/memory.hpp>

#include "device/cuda_api.hpp"

namespace kiln::runtime {

/// The driver, with the functions that memory tiers need besides those that kiln needs.
struct MemoryDriver {
  std::shared_ptr<const CudaApi> api;
  cuda::MemoryFunctions memory;
};

/// Where the memory of one device comes from: a pool, managed or plain memory. Any thread in which a context of the
/// device is current; `trim` and the end of it need none. It counts nothing.
class MemorySource {
 public:
  virtual ~MemorySource() = default;

  virtual cuda::DriverResult allocate(cuda::DevicePointer& memory, std::size_t bytes, cuda::Stream stream) = 0;
  virtual cuda::DriverResult release(cuda::DevicePointer memory, cuda::Stream stream) = 0;
  /// Whether `release` frees when the stream comes to it. Else it frees at once, and who calls it waits first.
  virtual bool follows_streams() const = 0;
  /// The driver's function that `allocate` calls, for messages.
  virtual const char* entry() const = 0;
  /// Gives back what is held and not used; how many bytes that was.
  virtual Result<std::uint64_t> trim() { return std::uint64_t{0}; }
};

/// For a device, of whose contexts one is current. An error says why the device or its driver cannot do this.
Result<std::shared_ptr<MemorySource>> open_source(MemoryTier tier, const MemoryDriver& driver,
                                                  cuda::DeviceNumber device, std::uint64_t limit);

}  // namespace kiln::runtime
