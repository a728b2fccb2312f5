// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <kiln/backend.hpp>
#include <kiln/result.hpp>

struct CUstream_st;        // *CUstream and *cudaStream_t
struct _cl_command_queue;  // *cl_command_queue; NOLINT(bugprone-reserved-identifier)

namespace kiln {

namespace detail {
template <class Stream>
constexpr auto native_stream(const Stream& stream, int) -> decltype(stream.get()) {
  return stream.get();
}
template <class Stream>
constexpr auto native_stream(const Stream& stream, long)
    -> std::enable_if_t<std::is_convertible_v<const Stream&, CUstream_st*>, CUstream_st*> {
  return stream;
}
}  // namespace detail

/// A stream of the caller: a CUstream (which cudaStream_t is too) or a cl_command_queue. It does not own the stream.
/// `kiln/cuda.hpp` names CUDA's default streams. A null CUstream is CUDA's legacy default stream, as in CUDA; a null
/// queue is Code::InvalidArgument. A value.
class StreamRef {
 public:
  // NOLINTBEGIN(google-explicit-constructor): it is one where one is meant
  constexpr StreamRef(CUstream_st* stream) : native_(stream) {}
  constexpr StreamRef(_cl_command_queue* queue) : native_(queue) {}
  /// Takes a type with a member `get` that returns one of them, such as cuda::stream_ref, or that converts to a
  /// CUstream, such as rmm::cuda_stream_view.
  template <class Stream, class = std::enable_if_t<std::is_class_v<Stream>>,
            class Native = decltype(detail::native_stream(std::declval<const Stream&>(), 0))>
  constexpr StreamRef(const Stream& stream) : StreamRef(Native{detail::native_stream(stream, 0)}) {}
  // NOLINTEND(google-explicit-constructor)
  StreamRef(std::nullptr_t) = delete;

  /// Takes a handle without a type, for bindings of other languages. It must be a CUstream or a cl_command_queue.
  static constexpr StreamRef from_native(void* native) { return StreamRef(native, 0); }
  constexpr void* native() const { return native_; }

 private:
  constexpr StreamRef(void* native, int) : native_(native) {}
  void* native_;
};

/// A size in up to three dimensions.
struct Dim3 {
  constexpr Dim3(unsigned its_x, unsigned its_y = 1, unsigned its_z = 1)  // NOLINT(google-explicit-constructor)
      : x(its_x), y(its_y), z(its_z) {}
  unsigned x;
  unsigned y;
  unsigned z;
};
/// The number of blocks of a launch. A type of its own, so that a call cannot confuse it with the block.
struct Grid : Dim3 {
  constexpr explicit Grid(unsigned its_x, unsigned its_y = 1, unsigned its_z = 1) : Dim3(its_x, its_y, its_z) {}
};
/// The number of threads of a block.
struct Block : Dim3 {
  constexpr explicit Block(unsigned its_x, unsigned its_y = 1, unsigned its_z = 1) : Dim3(its_x, its_y, its_z) {}
};

/// A CUDA driver launch attribute: its id (CUlaunchAttributeID) and its 64-byte value.
struct LaunchAttribute {
  unsigned id = 0;
  std::array<unsigned char, 64> value{};
};

/// The configuration of a kernel launch. Grid, block and stream have no defaults: each launch names them. OpenCL
/// supports the grid, the block, and local memory as arguments only. A launch that sets anything that the device does
/// not support fails with Code::Unsupported; it is never silently changed. A grid or block with a size of 0 is
/// Code::InvalidArgument.
struct LaunchConfig {
  LaunchConfig(Grid its_grid, Block its_block, StreamRef its_stream, std::size_t its_shared_bytes = 0)
      : grid(its_grid), block(its_block), stream(its_stream), shared_bytes(its_shared_bytes) {}

  Grid grid;
  Block block;
  StreamRef stream;
  std::size_t shared_bytes;  ///< dynamic shared memory
  Dim3 cluster{0, 0, 0};     ///< in blocks; 0 means no cluster
  bool cooperative = false;
  bool programmatic = false;  ///< may start before the preceding launch has finished
  int priority = 0;
  /// Other attributes, passed to the driver unchanged.
  std::vector<LaunchAttribute> attributes = {};
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

inline Argument argument_of(const LocalMemory& local) { return {nullptr, local.bytes}; }
template <class T>
Argument argument_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>, "a kernel gets the bytes of its arguments");
  return {&value, sizeof value};
}

/// A source of device memory. Set both `allocate` and `release`, or neither to use the driver's stream-ordered pool.
/// `kiln/rmm.hpp` makes one from a memory resource. kiln calls the functions from any thread.
struct Allocator {
  /// Returns memory for use on the stream, or why there is none.
  std::function<Result<void*>(std::size_t bytes, StreamRef stream)> allocate;
  std::function<void(void* memory, std::size_t bytes, StreamRef stream)> release;
  /// The backend to use it for; by default, every device of the session.
  std::optional<Backend> backend = std::nullopt;
};

}  // namespace kiln
