#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "device/device.hpp"
#include "device/opencl_place.hpp"

namespace kiln {

/// The devices behind the OpenCL loader. OpenCL has no current context: every thread works where the device does, which
/// is in the caller's context where one was given, else in one of kiln's own for the default device, made at the first
/// need; `make_current` chooses another device for all threads. Streams are command queues, memory is cl_mem.
class OpenClDevice final : public Device {
 public:
  struct Options {
    cl_context context = nullptr;   ///< the caller's, who keeps it alive; together with
    cl_device_id device = nullptr;  ///< the one of its devices to be used
    Allocator allocator;            ///< of cl_mem; the driver's buffers where none is given
  };
  explicit OpenClDevice(Options options);

  std::string kind() const override { return "opencl"; }
  Result<std::vector<DeviceInfo>> devices() override;
  Result<Place> current() override;
  Status make_current(std::size_t device) override;
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override;

  Result<void*> make_stream() override;
  Status release_stream(void* stream) override;
  Result<bool> capturing(void* /*stream*/) override { return false; }

  Result<void*> allocate(std::size_t bytes, void* stream) override;
  Status release(void* memory, std::size_t bytes, void* stream) override;
  Status copy_in(void* to, const void* from, std::size_t bytes, void* stream) override;
  Status copy_out(void* to, void* from, std::size_t bytes, void* stream) override;
  Status synchronise(void* stream) override;

 private:
  /// The driver, opened, and where each of its devices is.
  struct Opened {
    std::shared_ptr<const OpenClLibrary> library;
    std::vector<OpenClLibrary::Device> devices;
    std::vector<std::shared_ptr<const OpenClPlace>> places;  ///< by device; null until it is needed
    std::size_t chosen = 0;
  };
  Result<Opened*> open() KILN_REQUIRES(mutex_);
  Result<std::shared_ptr<const OpenClPlace>> place_of(std::size_t device) KILN_REQUIRES(mutex_);
  /// The chosen device and its place.
  Result<std::shared_ptr<const OpenClPlace>> here(cl_device_id* device = nullptr);
  /// Its place, for what is done with a queue: Code::InvalidArgument where none is given.
  Result<std::shared_ptr<const OpenClPlace>> here_with(void* queue);

  const Options options_;
  Mutex mutex_;
  std::unique_ptr<Opened> opened_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
