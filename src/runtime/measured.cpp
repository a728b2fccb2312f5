#include "runtime/measured.hpp"

#include <utility>

namespace kiln::runtime {
namespace {

Event not_used(const std::string& what, const std::string& why) {
  Event event;
  event.kind = Event::Kind::Configuration;
  event.message = "the calibration " + what + " is not used: " + why +
                  "; auto goes by what the programs' authors wrote. 'kiln calibrate' measures this machine";
  return event;
}

}  // namespace

Measured Measured::load(const std::string& path, const EventCallback& listeners) {
  Measured measured;
  measured.path_ = path;
  if (path.empty()) return measured;
  Result<std::optional<Calibration>> calibration = Calibration::read(path);
  if (!calibration) {
    listeners(not_used(path, calibration.error().message));
    return measured;
  }
  if (!*calibration) return measured;
  if (const Machine here = this_processor(); !(*calibration)->machine.agrees_with(here)) {
    listeners(not_used(path, "it was made on another machine (" + (*calibration)->machine.processor + ", and this is " +
                                 here.processor + ")"));
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

Event Measured::of_another_device(Backend backend, const std::string& device) const {
  const auto measured = calibration_->machine.devices.find(backend);
  const std::string was = measured == calibration_->machine.devices.end() ? "none" : measured->second;
  return not_used(path_ + " of " + to_string(backend),
                  "it was made on another device (" + was + ", and this is " + device_text(device) + ")");
}

}  // namespace kiln::runtime
