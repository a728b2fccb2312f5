// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibration/loaded_calibration.hpp"

#include <utility>

namespace kiln::runtime {
namespace {

Event not_used(const std::string& what, const std::string& reason) {
  Event event;
  event.kind = Event::Kind::ConfigWarning;
  event.message = "the calibration " + what + " is not used: " + reason +
                  "; mode auto uses the estimates of the program until 'kiln calibrate' measures this machine";
  return event;
}

}  // namespace

LoadedCalibration LoadedCalibration::load(const std::string& path, const EventCallback& listeners) {
  LoadedCalibration measured;
  measured.path_ = path;
  if (path.empty()) return measured;
  Result<std::optional<Calibration>> calibration = Calibration::read(path);
  if (!calibration) {
    listeners(not_used(path, calibration.error().message));
    return measured;
  }
  if (!*calibration) return measured;
  if (const Machine here = this_processor(); !(*calibration)->machine.matches(here)) {
    listeners(not_used(path, "it is from another machine (" + (*calibration)->machine.processor + ", but this is " +
                                 here.processor + ")"));
    return measured;
  }
  measured.calibration_ = std::move(*calibration);
  return measured;
}

std::optional<std::uint64_t> LoadedCalibration::crossover(const Operation& operation, Backend backend) const {
  return calibration_ ? calibration_->crossover(operation.name(), backend) : std::nullopt;
}

bool LoadedCalibration::matches_device(Backend backend, const std::string& device) const {
  if (!calibration_) return false;
  const auto measured = calibration_->machine.devices.find(backend);
  return measured != calibration_->machine.devices.end() && measured->second == device_text(device);
}

Event LoadedCalibration::device_mismatch_event(Backend backend, const std::string& device) const {
  const auto measured = calibration_->machine.devices.find(backend);
  const std::string was = measured == calibration_->machine.devices.end() ? "none" : measured->second;
  return not_used(path_ + " of " + to_string(backend),
                  "it is from another device (" + was + ", but this is " + device_text(device) + ")");
}

}  // namespace kiln::runtime
