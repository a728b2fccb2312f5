// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/export.hpp>
#include <kiln/launch.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>
#include <kiln/wait.hpp>

namespace kiln {

namespace detail {
struct KernelState;
struct HandleOwner;
/// The state that a handle reads: the kernel, once it is ready for every device of the process.
struct ReadySlot {
  std::atomic<const KernelState*> ready{nullptr};
};
}  // namespace detail

/// The source location of a call, for events that report the caller. As a default argument it is the location of the
/// call.
struct Caller {
  const char* file = "";
  int line = 0;
  static Caller here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
  std::string text() const { return std::string(file) + ":" + std::to_string(line); }
};

/// One parameter of a kernel, as far as the compiler and the driver report it. A value type.
struct KernelParameter {
  enum class Kind : unsigned char {
    Unknown,      ///< a structure, or not reported
    Integer,      ///< an integer, a character or a truth value
    Float,        ///< a floating-point number
    Pointer,      ///< device memory
    LocalMemory,  ///< OpenCL: memory of a work group, see `LocalMemory`
  };
  std::string name;  ///< empty if it is not reported
  std::string type;  ///< as in the source, for example "float" or "double const*"; empty if not reported
  Kind kind = Kind::Unknown;
  std::size_t size = 0;          ///< in bytes; 0 if it is not reported
  Kind element = Kind::Unknown;  ///< of a pointer: what it points to, an integer or a floating-point number
  std::size_t element_size = 0;  ///< of a pointer: size of that in bytes; 0 if it is not reported
};
using KernelParameters = std::vector<KernelParameter>;

class Kernel;

/// A kernel that is ready, without ownership: a cheap value for the time during which a `KernelHandle` or a `Kernel` of
/// it exists. Thread-safe.
class KILN_API KernelRef {
 public:
  /// A temporary Kernel would leave a reference to nothing.
  KernelRef(Kernel&&) = delete;

  /// Launches the kernel on the stream of the configuration, in the calling thread's current context. Does not wait for
  /// it. Passes the bytes of each argument without a conversion: `2` for a float parameter is not 2. A pointer must be
  /// device memory or, for OpenCL, a cl_mem or a Buffer; a host pointer can crash the OpenCL driver.
  template <class... Args>
  Status launch(const LaunchConfig& config, const Args&... args) const {
    const Argument arguments[] = {argument_of(args)..., {}};
    return launch_raw(config, arguments, sizeof...(args));
  }
  /// Same, with an array of arguments.
  Status launch_raw(const LaunchConfig& config, const Argument* arguments, std::size_t count) const;

  /// Returns the CUkernel or cl_kernel, for callers that launch it themselves. `kiln::cuda::native` and
  /// `kiln::opencl::native` return it with its type.
  void* native() const;
  /// Returns the CUfunction in the calling thread's current context, or the cl_kernel.
  Result<void*> function() const;
  /// Returns the block size and grid size that the driver suggests for this amount of dynamic shared memory.
  Result<Occupancy> occupancy(std::size_t shared_bytes = 0) const;

  /// Returns the parameters; never null. The list is empty if nothing is reported. CUDA's driver reports sizes, and the
  /// symbol of a kernel that is not `extern "C"` its types. OpenCL reports names and types if the driver keeps them in
  /// its binaries (PoCL does; others may need the option `-cl-kernel-arg-info`). Has the same requirements as `launch`.
  Result<std::shared_ptr<const KernelParameters>> parameters() const;
  /// Returns the size in bytes of each parameter; an empty list if one of them is not reported.
  Result<std::vector<std::size_t>> parameter_sizes() const;

  /// Returns the name of the entry.
  const std::string& name() const;
  const Target& target() const;  ///< target of the device that the kernel is compiled for

 private:
  friend class Kernel;
  friend class KernelHandle;
  explicit KernelRef(const detail::KernelState* state) : state_(state) {}
  const detail::KernelState* state_;
};

/// A kernel that can be launched. It owns what it needs: it stays loaded and keeps its session's state alive until the
/// last copy is destroyed, also after `Session::refresh` and `Session::release`, and after its `KernelHandle` and the
/// `Session` are destroyed. Destroying the last object of a session ends the session, which can wait for a compile in
/// this process. A copy costs an atomic increment. Thread-safe.
class KILN_API Kernel : public KernelRef {
 private:
  friend class KernelHandle;
  friend class Session;
  Kernel(const detail::KernelState* state, std::shared_ptr<const detail::HandleOwner> owner)
      : KernelRef(state), owner_(std::move(owner)) {}
  std::shared_ptr<const detail::HandleOwner> owner_;
};

/// A handle to one kernel of one unit. Create it once and copy it; it works on every device of the process. It keeps
/// its session's state alive. Thread-safe.
class KILN_API KernelHandle {
 public:
  /// Returns the kernel. If it is ready, the call costs one acquire load and the copy of a shared pointer. Otherwise
  /// the call joins or starts the compile of this kernel and waits for it, at most `wait`; after a timeout the
  /// compile continues, so that a later `get` can use its result. Errors: TimedOut, CompileFailed with the log,
  /// Unavailable if there is no device or no current context.
  Result<Kernel> get(Wait wait = kForever, Caller caller = Caller::here()) const {
    if (const detail::KernelState* ready = slot_->ready.load(std::memory_order_acquire)) return Kernel(ready, owner_);
    return get_or_wait(wait, nullptr, caller);
  }
  /// Same as `get`, for a launch on this stream. If the stream is capturing a graph, the kernel must be ready in the
  /// current context; otherwise the call returns Code::Capturing without loading, allocating or waiting.
  Result<Kernel> get_for_stream(StreamRef stream, Wait wait = kForever, Caller caller = Caller::here()) const {
    return get_or_wait(wait, &stream, caller);
  }
  /// Returns the kernel if an earlier `get` made it ready for every device of the process, otherwise no value. Starts
  /// no work. A unit that was only requested is not ready here before its first `get`, and with devices of different
  /// targets none is. To poll, call `get` with `Wait::poll`.
  [[nodiscard]] std::optional<Kernel> try_get() const {
    const detail::KernelState* ready = slot_->ready.load(std::memory_order_acquire);
    return ready != nullptr ? std::optional<Kernel>(Kernel(ready, owner_)) : std::nullopt;
  }
  /// Same as `try_get` without ownership, for loops in which the copy of a shared pointer counts: costs one acquire
  /// load. The result is valid as long as this handle, a copy of it, or a `Kernel` obtained from it exists.
  [[nodiscard]] std::optional<KernelRef> try_get_ref() const {
    const detail::KernelState* ready = slot_->ready.load(std::memory_order_acquire);
    return ready != nullptr ? std::optional<KernelRef>(KernelRef(ready)) : std::nullopt;
  }
  /// Returns true if `try_get` would return a kernel.
  [[nodiscard]] bool ready() const { return slot_->ready.load(std::memory_order_acquire) != nullptr; }

 private:
  friend class Session;
  KernelHandle(Unit unit, std::shared_ptr<const detail::HandleOwner> owner, const detail::ReadySlot* slot)
      : slot_(slot), owner_(std::move(owner)), unit_(std::move(unit)) {}
  Result<Kernel> get_or_wait(Wait wait, const StreamRef* stream, Caller caller) const;
  const detail::ReadySlot* slot_;  // owned by owner_
  std::shared_ptr<const detail::HandleOwner> owner_;
  Unit unit_;
};

}  // namespace kiln
