#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// A size in up to three dimensions.
struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

/// A CUDA driver launch attribute: its id (CUlaunchAttributeID) and its 64-byte value.
struct LaunchAttribute {
  unsigned id = 0;
  std::array<unsigned char, 64> value{};
};

/// The configuration of a kernel launch. OpenCL supports the grid, the block, and local memory as arguments only. A
/// launch that sets anything that the device does not support fails with Code::Unsupported; it is never silently
/// changed.
struct LaunchConfig {
  void* stream = nullptr;        ///< the caller's CUstream or cl_command_queue
  Dim3 grid;                     ///< in blocks
  Dim3 block;                    ///< in threads
  std::size_t shared_bytes = 0;  ///< dynamic shared memory
  Dim3 cluster{0, 0, 0};         ///< in blocks; 0 means no cluster
  bool cooperative = false;
  bool programmatic = false;  ///< may start before the preceding launch has finished
  int priority = 0;
  /// Other attributes, passed to the driver unchanged.
  std::vector<LaunchAttribute> attributes;
};

/// A launch size that keeps the device fully occupied.
struct Occupancy {
  unsigned block_size = 0;     ///< threads per block
  unsigned min_grid_size = 0;  ///< minimum number of blocks that uses the whole device
};

/// One kernel argument: the address of its value, valid during the call, and its size in bytes.
struct Argument {
  const void* data = nullptr;
  std::size_t size = 0;
};

/// A kernel argument that reserves OpenCL local memory.
struct LocalMemory {
  std::size_t bytes = 0;
};

class Buffer;
inline Argument argument_of(const LocalMemory& local) { return {nullptr, local.bytes}; }
template <class T>
Argument argument_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>, "a kernel gets the bytes of its arguments");
  return {&value, sizeof value};
}

/// A source of device memory. Set both `allocate` and `release`, or neither to use the driver's stream-ordered pool.
struct Allocator {
  /// Returns memory for use on the stream, or null if none is available.
  std::function<void*(std::size_t bytes, void* stream)> allocate;
  std::function<void(void* memory, std::size_t bytes, void* stream)> release;
  /// Returns why the calling thread's last `allocate` returned null, for the error that the caller gets. Optional.
  std::function<std::string()> last_error = nullptr;
  /// "cuda" or "opencl" to use it for devices of that kind only; empty to use it for every device of the session.
  std::string kind = {};
};

}  // namespace kiln
