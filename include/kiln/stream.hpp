// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <kiln/export.hpp>
#include <kiln/launch.hpp>
#include <kiln/result.hpp>
#include <kiln/session.hpp>

/// Streams and device memory for programs that have none. Programs that bring their own do not need this header.
namespace kiln {

namespace detail {
struct StreamState;
}

/// Device memory that is freed in stream order. Movable, not copyable. Pass it to `launch` directly.
class KILN_API Buffer {
 public:
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* native() const { return memory_; }  ///< CUdeviceptr or cl_mem
  std::size_t size() const { return size_; }
  friend Argument argument_of(const Buffer& buffer) { return {&buffer.memory_, sizeof buffer.memory_}; }

 private:
  friend class Stream;
  Buffer(std::shared_ptr<detail::StreamState> stream, void* memory, std::size_t size);
  std::shared_ptr<detail::StreamState> stream_;
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// A stream that also allocates memory, for programs that bring neither; `Session::stream` creates it. Copies share it.
/// Every calling thread must have the context current in which the stream was created; in the creating thread it is.
class KILN_API Stream {
 public:
  void* native() const;        ///< CUstream or cl_command_queue
  operator StreamRef() const;  // NOLINT(google-explicit-constructor): a launch takes it as its stream

  /// Allocates device memory for use on this stream.
  Result<Buffer> allocate(std::size_t bytes) const;
  /// Allocates memory and copies the given bytes into it. The second form takes any contiguous container, such as a
  /// vector.
  Result<Buffer> copy_of(const void* from, std::size_t bytes) const;
  template <class Range>
  Result<Buffer> copy_of(const Range& range) const {
    return copy_of(range.data(), range.size() * sizeof *range.data());
  }
  /// Both copies are complete on return.
  Status upload(const Buffer& to, const void* from, std::size_t bytes) const;
  Status download(void* to, const Buffer& from, std::size_t bytes) const;
  /// Waits until all work on the stream is complete.
  Status synchronize() const;

 private:
  friend class Session;
  explicit Stream(std::shared_ptr<detail::StreamState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::StreamState> state_;
};

}  // namespace kiln
