#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/device_info.hpp>
#include <kiln/launch.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The context in which the calling thread loads and launches.
struct Place {
  std::uint64_t context = 0;  ///< never used for another context in the life of the process
  std::size_t device = 0;     ///< in the order of `Device::devices`
  Target target;
};

/// One kernel of a module. Any thread. It stays good for as long as somebody holds it, whatever becomes of contexts:
/// it holds nothing that belongs to one.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;

  /// CUkernel or cl_kernel. A cl_kernel's arguments are shared by all who set them.
  virtual void* native() const = 0;
  /// CUfunction in the calling thread's current context, which is the caller's to keep for as long as the context
  /// lives; cl_kernel.
  virtual Result<void*> function() = 0;

  /// Makes it ready to be launched in the current context; does nothing where it is. Code::Capturing, and nothing
  /// else done, where it is not ready and `stream` records a graph.
  virtual Status prepare(void* stream) = 0;
  /// Prepares as above, checks number and sizes of the arguments, and puts it on the stream. Never waits.
  virtual Status launch(const Launch& how, const Argument* arguments, std::size_t count) = 0;

  virtual Result<Occupancy> occupancy(std::size_t shared_bytes) = 0;
  /// The bytes of each parameter; nothing where the driver does not say.
  virtual Result<std::vector<std::size_t>> parameters() { return std::vector<std::size_t>(); }
};

/// An artifact that the driver took: it serves every context whose place has the artifact's target. Any thread.
class Module {
 public:
  virtual ~Module() = default;
  /// By the symbol that the artifact's entry names; Code::InvalidArgument where there is none.
  virtual Result<std::shared_ptr<DeviceKernel>> kernel(const std::string& symbol) = 0;
};

/// The devices of one driver, as kiln uses them. Every implementation passes tests/conformance/device_conformance.hpp.
/// Any thread may call any function. None makes, keeps or switches a context, except `make_current`, which says so.
class Device {
 public:
  virtual ~Device() = default;

  /// "cuda" or "opencl": also the kind of the units whose artifacts it loads.
  virtual std::string kind() const = 0;
  /// Opens the driver at the first question; an error says what is missing and what to do.
  virtual Result<std::vector<DeviceInfo>> devices() = 0;
  /// Where the calling thread is. Code::Unavailable where it has no current context.
  virtual Result<Place> current() = 0;
  /// Asked for by a caller who has no context: makes the device's primary context current in the calling thread.
  virtual Status make_current(std::size_t device) = 0;

  /// Gives the bytes to the driver. Needs no current context, disturbs no stream capture in any thread.
  /// Code::LoadRefused where the driver does not take them: whoever asked looks elsewhere or compiles again.
  virtual Result<std::shared_ptr<Module>> load(const Artifact& artifact) = 0;

  /// Streams, for those who bring none: in the current context, and to be given back in it. Work on one that is given
  /// back is done all the same; OpenCL's is done by then.
  virtual Result<void*> make_stream() = 0;
  virtual Status release_stream(void* stream) = 0;
  /// Whether the stream records a graph just now.
  virtual Result<bool> capturing(void* stream) = 0;

  /// Memory of the current context, from the allocator that was given or the driver's stream-ordered pool, in the
  /// order of the stream. What is returned is a CUdeviceptr or a cl_mem. All four are Code::Capturing on a stream that
  /// records a graph.
  virtual Result<void*> allocate(std::size_t bytes, void* stream) = 0;
  virtual Status release(void* memory, std::size_t bytes, void* stream) = 0;
  /// Both have ended when they return.
  virtual Status copy_in(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  virtual Status copy_out(void* to, void* from, std::size_t bytes, void* stream) = 0;
  /// Waits for all that is on the stream.
  virtual Status synchronise(void* stream) = 0;
};

}  // namespace kiln
