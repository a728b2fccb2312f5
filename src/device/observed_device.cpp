#include "device/observed_device.hpp"

#include <utility>

namespace kiln {
namespace {

// Times one thing and tells of it when it is done.
class Watch {
 public:
  Watch(const Observer& observer, const Clock& clock, Event::Kind kind, void* stream, std::size_t bytes,
        const char* message)
      : observer_(observer), clock_(clock), start_(clock.steady()) {
    event_.kind = kind;
    event_.stream = reinterpret_cast<std::uintptr_t>(stream);
    event_.bytes = bytes;
    event_.message = message;
  }
  template <class Outcome>
  Outcome tell_of(Outcome outcome) {
    if (!outcome.ok()) return outcome;
    event_.ms = milliseconds_since(clock_, start_);
    observer_.tell(event_);
    return outcome;
  }

 private:
  const Observer& observer_;
  const Clock& clock_;
  const std::chrono::nanoseconds start_;
  Event event_;
};

}  // namespace

ObservedDevice::ObservedDevice(std::unique_ptr<Device> device, Observer observer, const Clock& clock)
    : device_(std::move(device)), observer_(std::move(observer)), clock_(clock) {}

Result<void*> ObservedDevice::allocate(std::size_t bytes, void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Allocated, stream, bytes, "allocated");
  return watch.tell_of(device_->allocate(bytes, stream));
}

Status ObservedDevice::release(void* memory, std::size_t bytes, void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Allocated, stream, bytes, "released");
  return watch.tell_of(device_->release(memory, bytes, stream));
}

Status ObservedDevice::copy_in(void* to, const void* from, std::size_t bytes, void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Copied, stream, bytes, "to the device");
  return watch.tell_of(device_->copy_in(to, from, bytes, stream));
}

Status ObservedDevice::copy_out(void* to, void* from, std::size_t bytes, void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Copied, stream, bytes, "from the device");
  return watch.tell_of(device_->copy_out(to, from, bytes, stream));
}

Status ObservedDevice::synchronise(void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Synchronised, stream, 0, "");
  return watch.tell_of(device_->synchronise(stream));
}

}  // namespace kiln
