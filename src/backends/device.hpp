// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/device_info.hpp>
#include <kiln/kernel.hpp>
#include <kiln/launch.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The context in which the calling thread loads and launches.
struct CurrentContext {
  std::uint64_t context = 0;  ///< id of the context; not reused during the life of the process
  std::size_t device = 0;     ///< index in `Device::devices`
  Target target;
};

/// A kernel of a module. It remains valid as long as it is referenced, even if contexts are destroyed, because it holds
/// no resource of a context. Thread-safe.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;

  /// Returns the CUkernel or cl_kernel. The arguments of a cl_kernel are shared by all callers that set them.
  virtual void* native() const = 0;
  /// Returns the CUfunction in the calling thread's current context, which the caller can use as long as the context
  /// lives; or the cl_kernel.
  virtual Result<void*> function() = 0;

  /// Prepares the kernel for a launch in the current context; does nothing if it is ready. Returns Code::Capturing
  /// without any effect if it is not ready and `stream` is capturing a graph.
  virtual Status prepare(void* stream) = 0;
  /// Prepares as above, checks the number and sizes of the arguments, and enqueues the kernel. Does not wait.
  virtual Status launch(const LaunchConfig& config, const Argument* arguments, std::size_t count) = 0;

  virtual Result<Occupancy> occupancy(std::size_t shared_bytes) = 0;
  /// Returns the shared memory per block that the kernel itself declares, in bytes; 0 if the driver does not report it.
  virtual std::size_t static_shared_bytes() { return 0; }
  /// Returns the parameters as far as they are reported; never null. The same list in every call.
  virtual Result<std::shared_ptr<const KernelParameters>> parameters() {
    return std::make_shared<const KernelParameters>();
  }
};

/// An artifact that the driver has loaded. It serves every context with the artifact's target. Thread-safe.
class Module {
 public:
  virtual ~Module() = default;
  /// Returns the kernel with the symbol of an artifact's entry point; Code::InvalidArgument if there is none.
  virtual Result<std::shared_ptr<DeviceKernel>> kernel(const std::string& symbol) = 0;
};

/// The devices of one driver. Every implementation passes tests/conformance/device_conformance.hpp. No function
/// creates, retains or switches a context, except `make_current` and `ensure_current`.
/// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  /// Returns "cuda" or "opencl", which is also the kind of the units whose artifacts it loads.
  virtual std::string kind() const = 0;
  /// Lists the devices. The first call opens the driver; the error states what is missing and what to do.
  virtual Result<std::vector<DeviceInfo>> devices() = 0;
  /// Returns the calling thread's context. Returns Code::Unavailable if it has no current context.
  virtual Result<CurrentContext> current_context() = 0;
  /// Makes the device's primary context current in the calling thread, on the explicit request of a caller without a
  /// context.
  virtual Status make_current(std::size_t device) = 0;
  /// Makes the primary context of the first device current if the calling thread has no context or a destroyed one.
  /// Does nothing if it has one.
  virtual Status ensure_current() = 0;

  /// Loads an artifact into the driver. Needs no current context and disturbs no stream capture in any thread. Returns
  /// Code::LoadRejected if the driver rejects the bytes; the caller then uses another artifact or compiles again.
  virtual Result<std::shared_ptr<Module>> load(const Artifact& artifact) = 0;

  /// Streams for callers without their own. They belong to the current context and must be released in it. Work on a
  /// released stream still completes; with OpenCL it completes before the release returns.
  virtual Result<void*> create_stream() = 0;
  virtual Status release_stream(void* stream) = 0;
  /// Returns true if the stream is capturing a graph.
  virtual Result<bool> capturing(void* stream) = 0;

  /// Memory of the current context, from the given allocator or from the driver's stream-ordered pool, in stream order.
  /// It is a CUdeviceptr or a cl_mem. All four functions return Code::Capturing on a stream that is capturing a graph.
  virtual Result<void*> allocate(std::size_t bytes, void* stream) = 0;
  virtual Status release(void* memory, std::size_t bytes, void* stream) = 0;
  /// Both copies have completed when the call returns.
  virtual Status copy_to_device(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  virtual Status copy_to_host(void* to, void* from, std::size_t bytes, void* stream) = 0;
  /// Returns whether host memory is page-locked; no value if the driver does not report it. For events only.
  virtual std::optional<bool> is_pinned(const void* /*host*/) { return std::nullopt; }
  /// Waits for all work on the stream. Returns Code::InvalidArgument for a default stream of CUDA, as the copies do.
  virtual Status synchronize(void* stream) = 0;
};

}  // namespace kiln
