#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
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
/// What a handle looks at: the kernel, once it is ready for every device of the process.
struct ReadySlot {
  std::atomic<const KernelState*> ready{nullptr};
};
}  // namespace detail

/// No limit of time.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

/// Who asked, for the events that say so. As a default argument it is the line of the call.
struct Caller {
  const char* file = "";
  int line = 0;
  static Caller here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
  std::string text() const { return std::string(file) + ":" + std::to_string(line); }
};

/// A kernel that can be launched. A value; any thread; good for as long as its session, or a Handle of it, lives.
class KILN_API Kernel {
 public:
  /// Puts it on the caller's stream, in the calling thread's current context. Returns at once.
  template <class... Args>
  Status launch(const Launch& how, const Args&... args) const {
    const Argument arguments[] = {argument_of(args)..., {}};
    return launch_with(how, arguments, sizeof...(args));
  }
  Status launch_with(const Launch& how, const Argument* arguments, std::size_t count) const;

  /// For whoever launches by himself: CUkernel or cl_kernel …
  void* native() const;
  /// … and CUfunction in the calling thread's current context, or cl_kernel.
  Result<void*> function() const;
  Result<Occupancy> occupancy(std::size_t shared_bytes = 0) const;

  /// The bytes that each parameter takes, where the driver says so (CUDA); else nothing. Needs what `launch` needs.
  Result<std::vector<std::size_t>> parameters() const;

  const std::string& name() const;
  const Target& target() const;  ///< the device's for which it is

 private:
  friend class Handle;
  friend class Session;
  explicit Kernel(const detail::KernelState* state) : state_(state) {}
  const detail::KernelState* state_;
};

/// The way to one kernel of one unit. Made once; copyable; any thread, any of the process's devices.
class KILN_API Handle {
 public:
  /// Ready: at once, and for one acquire load. Else it joins or triggers the compile and waits for this one alone, at
  /// most `limit`; what runs then goes on running, so that a later `get` finds it. Errors: TimedOut, CompileFailed
  /// with the log, Unavailable where there is no device or no current context.
  Result<Kernel> get(std::chrono::nanoseconds limit = kForever, Caller caller = Caller::here()) const {
    if (const detail::KernelState* ready = slot_->ready.load(std::memory_order_acquire)) return Kernel(ready);
    return get_slowly(limit, nullptr, caller);
  }
  /// As `get`, for a launch on this stream: where the stream records a graph it is ready in the current context, or
  /// Code::Capturing says so and nothing was loaded, allocated or waited for.
  Result<Kernel> get_on(void* stream, std::chrono::nanoseconds limit = kForever, Caller caller = Caller::here()) const {
    return get_slowly(limit, &stream, caller);
  }
  /// Whether `get` would return a kernel at once.
  bool ready() const { return slot_->ready.load(std::memory_order_acquire) != nullptr; }

 private:
  friend class Session;
  explicit Handle(std::shared_ptr<detail::ReadySlot> slot) : slot_(std::move(slot)) {}
  Result<Kernel> get_slowly(std::chrono::nanoseconds limit, void* const* stream, Caller caller) const;
  std::shared_ptr<detail::ReadySlot> slot_;
};

/// Memory of a device, freed in the order of its stream. Owned by one; give it to `launch` as it is.
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

/// A stream with memory beside it, for programs that bring none of their own. Copies share it. Any thread that has the
/// context current in which it was made.
class KILN_API Stream {
 public:
  void* native() const;  ///< CUstream or cl_command_queue

  Result<Buffer> allocate(std::size_t bytes) const;
  /// Memory with these bytes in it; the second form takes anything that lies in one piece, such as a vector.
  Result<Buffer> copy_of(const void* from, std::size_t bytes) const;
  template <class Range>
  Result<Buffer> copy_of(const Range& range) const {
    return copy_of(range.data(), range.size() * sizeof *range.data());
  }
  /// Both have ended when they return.
  Status upload(const Buffer& to, const void* from, std::size_t bytes) const;
  Status download(void* to, const Buffer& from, std::size_t bytes) const;
  Status synchronise() const;

 private:
  friend class Session;
  explicit Stream(std::shared_ptr<detail::StreamState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::StreamState> state_;
};

}  // namespace kiln
