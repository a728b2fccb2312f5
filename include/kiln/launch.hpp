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

/// A launch attribute as the CUDA driver has it: its number (CUlaunchAttributeID) and its 64 bytes of value.
struct LaunchAttribute {
  unsigned id = 0;
  std::array<unsigned char, 64> value{};
};

/// How a kernel is launched. OpenCL has a grid, a block, local memory as arguments, and nothing of the rest: a launch
/// that asks for what the device does not have is Code::Unsupported, never silently something else.
struct Launch {
  void* stream = nullptr;        ///< CUstream or cl_command_queue: always the caller's
  Dim3 grid;                     ///< in blocks
  Dim3 block;                    ///< in threads
  std::size_t shared_bytes = 0;  ///< dynamic shared memory
  Dim3 cluster{0, 0, 0};         ///< in blocks; zero: none
  bool cooperative = false;
  bool programmatic = false;  ///< may begin before the launch in front of it has ended
  int priority = 0;
  /// Any other attribute, handed to the driver as it is.
  std::vector<LaunchAttribute> attributes;
};

/// A launch size that keeps the device busy.
struct Occupancy {
  unsigned block = 0;       ///< threads per block
  unsigned least_grid = 0;  ///< blocks with which the whole device is in use
};

/// One argument of a kernel: where its value lies for the time of the call, and how large it is.
struct Argument {
  const void* data = nullptr;
  std::size_t size = 0;
};

/// OpenCL local memory of a size, as an argument.
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

/// Where device memory comes from. The first two functions are given, or none: then it is the driver's stream-ordered
/// pool.
struct Allocator {
  /// Memory that may be used on the stream; null where there is none.
  std::function<void*(std::size_t bytes, void* stream)> allocate;
  std::function<void(void* memory, std::size_t bytes, void* stream)> release;
  /// Why the calling thread's last `allocate` gave null, for the error that its caller gets; may be missing.
  std::function<std::string()> why = nullptr;
  /// "cuda" or "opencl": for the devices of that kind alone; empty: for whichever the session uses.
  std::string kind = {};
};

}  // namespace kiln
