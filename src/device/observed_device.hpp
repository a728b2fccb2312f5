#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "device/device.hpp"
#include "observe/observer.hpp"

namespace kiln {

/// Another device, and somebody is told of what is done with its memory and streams: copies, waits, allocations. Only
/// what was done is told; what failed is in the error. Loads and launches are told of by the session, which knows what
/// they are for. Where nobody listens this is not put in place.
class ObservedDevice final : public Device {
 public:
  /// The clock must outlive it.
  ObservedDevice(std::unique_ptr<Device> device, Observer observer, const Clock& clock = system_clock());

  std::string kind() const override { return device_->kind(); }
  Result<std::vector<DeviceInfo>> devices() override { return device_->devices(); }
  Result<Place> current() override { return device_->current(); }
  Status make_current(std::size_t device) override { return device_->make_current(device); }
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override { return device_->load(artifact); }

  Result<void*> make_stream() override { return device_->make_stream(); }
  Status release_stream(void* stream) override { return device_->release_stream(stream); }
  Result<bool> capturing(void* stream) override { return device_->capturing(stream); }

  Result<void*> allocate(std::size_t bytes, void* stream) override;
  Status release(void* memory, std::size_t bytes, void* stream) override;
  Status copy_in(void* to, const void* from, std::size_t bytes, void* stream) override;
  Status copy_out(void* to, void* from, std::size_t bytes, void* stream) override;
  Status synchronise(void* stream) override;

 private:
  const std::unique_ptr<Device> device_;
  const Observer observer_;
  const Clock& clock_;
};

}  // namespace kiln
