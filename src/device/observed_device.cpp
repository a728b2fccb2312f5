#include "device/observed_device.hpp"

#include <utility>

namespace kiln {
namespace {

// Times one thing and tells of it when it is done.
class Watch {
 public:
  Watch(const Observer& observer, const Clock& clock, Event::Kind kind)
      : observer_(observer), clock_(clock), start_(clock.steady()) {
    event_.kind = kind;
  }
  Event& event() { return event_; }
  void on(void* stream, std::size_t bytes, const char* message) {
    event_.stream = reinterpret_cast<std::uintptr_t>(stream);
    event_.bytes = bytes;
    event_.message = message;
  }
  void tell() {
    event_.ms = milliseconds_since(clock_, start_);
    observer_.tell(event_);
  }
  template <class Outcome>
  Outcome tell_of(Outcome outcome) {
    if (outcome.ok()) tell();
    return outcome;
  }

 private:
  const Observer& observer_;
  const Clock& clock_;
  const std::chrono::nanoseconds start_;
  Event event_;
};

// What is told of everything that is done with an artifact.
struct Subject {
  Observer observer;
  const Clock& clock;
  std::string unit;
  std::string target;

  Watch watch(Event::Kind kind) const {
    Watch made(observer, clock, kind);
    made.event().unit = unit;
    made.event().target = target;
    return made;
  }
  void tell_refusal(Watch& watch, const Error& error) const {
    if (error.code != Code::LoadRefused) return;
    watch.event().kind = Event::Kind::LoadRefused;
    watch.event().message = error.message;
    watch.tell();
  }
};

class ObservedKernel final : public DeviceKernel {
 public:
  ObservedKernel(std::shared_ptr<DeviceKernel> kernel, std::shared_ptr<const Subject> subject, std::string name)
      : kernel_(std::move(kernel)), subject_(std::move(subject)), name_(std::move(name)) {}

  void* native() const override { return kernel_->native(); }
  Result<void*> function() override { return kernel_->function(); }
  Result<Occupancy> occupancy(std::size_t shared_bytes) override { return kernel_->occupancy(shared_bytes); }

  // A driver that loads late also refuses late.
  Status prepare(void* stream) override {
    Watch watch = subject_->watch(Event::Kind::Loaded);
    Status prepared = kernel_->prepare(stream);
    if (!prepared) subject_->tell_refusal(watch, prepared.error());
    return prepared;
  }
  Status launch(const Launch& how, const Argument* arguments, std::size_t count) override {
    Watch watch = subject_->watch(Event::Kind::Launched);
    watch.on(how.stream, 0, name_.c_str());
    Status launched = kernel_->launch(how, arguments, count);
    if (!launched) subject_->tell_refusal(watch, launched.error());
    return watch.tell_of(std::move(launched));
  }

 private:
  const std::shared_ptr<DeviceKernel> kernel_;
  const std::shared_ptr<const Subject> subject_;
  const std::string name_;
};

class ObservedModule final : public Module {
 public:
  ObservedModule(std::shared_ptr<Module> module, std::shared_ptr<const Subject> subject)
      : module_(std::move(module)), subject_(std::move(subject)) {}

  Result<std::shared_ptr<DeviceKernel>> kernel(const std::string& symbol) override {
    auto kernel = module_->kernel(symbol);
    if (!kernel) return kernel;
    return std::shared_ptr<DeviceKernel>(std::make_shared<ObservedKernel>(*std::move(kernel), subject_, symbol));
  }

 private:
  const std::shared_ptr<Module> module_;
  const std::shared_ptr<const Subject> subject_;
};

}  // namespace

ObservedDevice::ObservedDevice(std::unique_ptr<Device> device, Observer observer, const Clock& clock)
    : device_(std::move(device)), observer_(std::move(observer)), clock_(clock) {}

Result<std::shared_ptr<Module>> ObservedDevice::load(const Artifact& artifact) {
  const auto subject =
      std::make_shared<const Subject>(Subject{observer_, clock_, artifact.about.unit, artifact.target.name()});
  Watch watch = subject->watch(Event::Kind::Loaded);
  auto module = device_->load(artifact);
  if (!module) {
    subject->tell_refusal(watch, module.error());
    return module;
  }
  watch.tell();
  return std::shared_ptr<Module>(std::make_shared<ObservedModule>(*std::move(module), subject));
}

Result<void*> ObservedDevice::allocate(std::size_t bytes, void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Allocated);
  watch.on(stream, bytes, "allocated");
  return watch.tell_of(device_->allocate(bytes, stream));
}

Status ObservedDevice::release(void* memory, std::size_t bytes, void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Allocated);
  watch.on(stream, bytes, "released");
  return watch.tell_of(device_->release(memory, bytes, stream));
}

Status ObservedDevice::copy_in(void* to, const void* from, std::size_t bytes, void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Copied);
  watch.on(stream, bytes, "to the device");
  return watch.tell_of(device_->copy_in(to, from, bytes, stream));
}

Status ObservedDevice::copy_out(void* to, void* from, std::size_t bytes, void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Copied);
  watch.on(stream, bytes, "from the device");
  return watch.tell_of(device_->copy_out(to, from, bytes, stream));
}

Status ObservedDevice::synchronise(void* stream) {
  Watch watch(observer_, clock_, Event::Kind::Synchronised);
  watch.on(stream, 0, "");
  return watch.tell_of(device_->synchronise(stream));
}

}  // namespace kiln
