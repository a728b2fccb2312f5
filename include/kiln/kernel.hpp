#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/export.hpp>
#include <kiln/launch.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>

namespace kiln {

namespace detail {
struct KernelState;
struct StreamState;
struct HandleOwner;
/// The state that a handle reads: the kernel, once it is ready for every device of the process.
struct ReadySlot {
  std::atomic<const KernelState*> ready{nullptr};
};
}  // namespace detail

/// The value of a time limit that means no limit.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

/// The source location of a call, for events that report the caller. As a default argument it is the location of the
/// call.
struct Caller {
  const char* file = "";
  int line = 0;
  static Caller here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
  std::string text() const { return std::string(file) + ":" + std::to_string(line); }
};

/// A kernel that can be launched. Valid as long as a `KernelHandle` of it exists; without a handle, until the session
/// ends or `Session::release` releases its unit. Thread-safe.
class KILN_API Kernel {
 public:
  /// Launches the kernel on the caller's stream, in the calling thread's current context. Does not wait for it.
  template <class... Args>
  Status launch(const LaunchConfig& config, const Args&... args) const {
    const Argument arguments[] = {argument_of(args)..., {}};
    return launch_raw(config, arguments, sizeof...(args));
  }
  /// Same, with an array of arguments.
  Status launch_raw(const LaunchConfig& config, const Argument* arguments, std::size_t count) const;

  /// Returns the CUkernel or cl_kernel, for callers that launch it themselves.
  void* native() const;
  /// Returns the CUfunction in the calling thread's current context, or the cl_kernel.
  Result<void*> function() const;
  /// Returns the block size and grid size that the driver suggests for this amount of dynamic shared memory.
  Result<Occupancy> occupancy(std::size_t shared_bytes = 0) const;

  /// Returns the size in bytes of each parameter if the driver reports it (CUDA), otherwise an empty list. Has the same
  /// requirements as `launch`.
  Result<std::vector<std::size_t>> parameter_sizes() const;

  /// Returns the name of the entry.
  const std::string& name() const;
  const Target& target() const;  ///< target of the device that the kernel is compiled for

 private:
  friend class KernelHandle;
  friend class Session;
  explicit Kernel(const detail::KernelState* state) : state_(state) {}
  const detail::KernelState* state_;
};

/// A handle to one kernel of one unit. Create it once and copy it; it works on every device of the process. It keeps
/// its session alive, and the kernels that it returned stay loaded and can be launched after `refresh` and `release`.
/// Thread-safe.
class KILN_API KernelHandle {
 public:
  /// Returns the kernel. If it is ready, the call costs one acquire load. Otherwise the call joins or starts the
  /// compile of this kernel and waits for it, at most `timeout`; after a timeout the compile continues, so that a later
  /// `get` can use its result. Errors: TimedOut, CompileFailed with the log, Unavailable if there is no device or no
  /// current context.
  Result<Kernel> get(std::chrono::nanoseconds timeout = kForever, Caller caller = Caller::here()) const {
    if (const detail::KernelState* ready = slot_->ready.load(std::memory_order_acquire)) return Kernel(ready);
    return get_or_wait(timeout, nullptr, caller);
  }
  /// Same as `get`, for a launch on this stream. If the stream is capturing a graph, the kernel must be ready in the
  /// current context; otherwise the call returns Code::Capturing without loading, allocating or waiting.
  Result<Kernel> get_for_stream(void* stream, std::chrono::nanoseconds timeout = kForever,
                                Caller caller = Caller::here()) const {
    return get_or_wait(timeout, &stream, caller);
  }
  /// Returns the kernel if `get` would return without waiting, otherwise no value. Starts no work.
  std::optional<Kernel> try_get() const {
    const detail::KernelState* ready = slot_->ready.load(std::memory_order_acquire);
    return ready != nullptr ? std::optional<Kernel>(Kernel(ready)) : std::nullopt;
  }
  /// Returns true if `get` would return without waiting.
  bool ready() const { return slot_->ready.load(std::memory_order_acquire) != nullptr; }

 private:
  friend class Session;
  KernelHandle(std::shared_ptr<const detail::HandleOwner> owner, const detail::ReadySlot* slot)
      : slot_(slot), owner_(std::move(owner)) {}
  Result<Kernel> get_or_wait(std::chrono::nanoseconds timeout, void* const* stream, Caller caller) const;
  const detail::ReadySlot* slot_;  // owned by owner_
  std::shared_ptr<const detail::HandleOwner> owner_;
};

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

/// A stream that also allocates memory, for programs that bring neither. Copies share it. Every calling thread must
/// have the context current in which the stream was created.
class KILN_API Stream {
 public:
  void* native() const;  ///< CUstream or cl_command_queue

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
