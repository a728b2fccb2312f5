#include "runtime/measured.hpp"

#include <utility>

namespace kiln::runtime {
namespace {

void tell_unused(const EventCallback& listeners, const std::string& why) {
  if (!listeners) return;
  Event event;
  event.kind = Event::Kind::Configuration;
  event.message = why + "; auto goes by what the programs' authors wrote. 'kiln calibrate' measures this machine";
  listeners(event);
}

}  // namespace

Measured Measured::load(const std::string& path, const EventCallback& listeners) {
  Measured measured;
  measured.path_ = path;
  if (path.empty()) return measured;
  Result<std::optional<Calibration>> calibration = Calibration::read(path);
  if (!calibration) {
    tell_unused(listeners, "the calibration is not used: " + calibration.error().message);
    return measured;
  }
  if (!*calibration) return measured;
  if (const Machine here = this_processor(); !(*calibration)->machine.agrees_with(here)) {
    tell_unused(listeners, "the calibration " + path + " is not used: it was made on another machine (" +
                               (*calibration)->machine.processor + ", and this is " + here.processor + ")");
    return measured;
  }
  measured.calibration_ = std::move(*calibration);
  return measured;
}

std::optional<std::uint64_t> Measured::crossover(const Operation& operation, Backend backend) const {
  return calibration_ ? calibration_->crossover(operation.name(), backend) : std::nullopt;
}

bool Measured::is_of(Backend backend, const std::string& device) const {
  if (!calibration_) return false;
  const auto measured = calibration_->machine.devices.find(backend);
  return measured != calibration_->machine.devices.end() && measured->second == device_text(device);
}

}  // namespace kiln::runtime
