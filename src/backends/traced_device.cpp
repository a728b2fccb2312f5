// SPDX-License-Identifier: Apache-2.0
#include "backends/traced_device.hpp"

#include <optional>
#include <utility>

namespace kiln {
namespace {

// Measures one operation and emits an event when it is done. Does nothing if no listener was on at the beginning.
class ScopedEvent {
 public:
  ScopedEvent(const EventEmitter& emitter, const Clock& clock, Event::Kind kind, void* stream, std::size_t bytes,
              const char* message)
      : emitter_(emitter), clock_(clock) {
    if (!emitter) return;
    event_.emplace();
    event_->kind = kind;
    event_->stream = event_stream(stream);
    event_->bytes = bytes;
    event_->message = message;
    start_ = clock.steady();
  }
  /// Emits the event if the operation succeeded. For a copy, `device` tells about its host memory.
  template <class Outcome>
  Outcome emit_event(Outcome outcome, Device* device = nullptr, const void* host = nullptr) {
    if (!event_ || !outcome.has_value()) return outcome;
    event_->ms = milliseconds_since(clock_, start_);
    if (device != nullptr) event_->pinned = device->is_pinned(host);
    emitter_.emit(*event_);
    return outcome;
  }

 private:
  const EventEmitter& emitter_;
  const Clock& clock_;
  std::chrono::nanoseconds start_{0};
  std::optional<Event> event_;
};

}  // namespace

TracedDevice::TracedDevice(std::unique_ptr<Device> device, EventEmitter emitter, const Clock& clock)
    : device_(std::move(device)), emitter_(std::move(emitter)), clock_(clock) {}

Result<void*> TracedDevice::allocate(std::size_t bytes, void* stream) {
  ScopedEvent watch(emitter_, clock_, Event::Kind::Allocated, stream, bytes, "allocated");
  return watch.emit_event(device_->allocate(bytes, stream));
}

Status TracedDevice::release(void* memory, std::size_t bytes, void* stream) {
  ScopedEvent watch(emitter_, clock_, Event::Kind::Allocated, stream, bytes, "released");
  return watch.emit_event(device_->release(memory, bytes, stream));
}

Status TracedDevice::copy_to_device(void* to, const void* from, std::size_t bytes, void* stream) {
  ScopedEvent watch(emitter_, clock_, Event::Kind::Copied, stream, bytes, "to the device");
  return watch.emit_event(device_->copy_to_device(to, from, bytes, stream), device_.get(), from);
}

Status TracedDevice::copy_to_host(void* to, void* from, std::size_t bytes, void* stream) {
  ScopedEvent watch(emitter_, clock_, Event::Kind::Copied, stream, bytes, "from the device");
  return watch.emit_event(device_->copy_to_host(to, from, bytes, stream), device_.get(), to);
}

Status TracedDevice::synchronize(void* stream) {
  ScopedEvent watch(emitter_, clock_, Event::Kind::Synchronized, stream, 0, "");
  return watch.emit_event(device_->synchronize(stream));
}

}  // namespace kiln
