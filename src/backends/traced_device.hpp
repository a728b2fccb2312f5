// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/device.hpp"
#include "base/clock.hpp"
#include "events/event_emitter.hpp"

namespace kiln {

/// A decorator of a device that emits events for copies, synchronizations and allocations. It reports only successful
/// operations; a failure is in the returned error. The session reports loads and launches, because it knows their
/// purpose. Used only if there are listeners; while they are off, it
/// measures nothing. Thread-safe.
class TracedDevice final : public Device {
 public:
  /// The clock must outlive this object.
  TracedDevice(std::unique_ptr<Device> device, EventEmitter emitter, const Clock& clock = system_clock());

  std::string kind() const override { return device_->kind(); }
  Result<std::vector<DeviceInfo>> devices() override { return device_->devices(); }
  Result<CurrentContext> current_context() override { return device_->current_context(); }
  Status make_current(std::size_t device) override { return device_->make_current(device); }
  Status ensure_current() override { return device_->ensure_current(); }
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override { return device_->load(artifact); }

  Result<void*> create_stream() override { return device_->create_stream(); }
  Status release_stream(void* stream) override { return device_->release_stream(stream); }
  Result<bool> capturing(void* stream) override { return device_->capturing(stream); }

  Result<void*> allocate(std::size_t bytes, void* stream) override;
  Status release(void* memory, std::size_t bytes, void* stream) override;
  Status copy_to_device(void* to, const void* from, std::size_t bytes, void* stream) override;
  Status copy_to_host(void* to, void* from, std::size_t bytes, void* stream) override;
  std::optional<bool> is_pinned(const void* host) override { return device_->is_pinned(host); }
  Status synchronize(void* stream) override;

 private:
  const std::unique_ptr<Device> device_;
  const EventEmitter emitter_;
  const Clock& clock_;
};

}  // namespace kiln
