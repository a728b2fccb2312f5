// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kiln/event.hpp>
#include <kiln/runtime/calibration.hpp>

namespace kiln::runtime {

/// Returns the name of a device or processor as stored in a calibration. Names come from drivers and are compared with
/// names read from JSON, so only characters that no encoding changes are kept.
std::string device_text(std::string name);

/// The calibration that this process uses. Immutable after `load`.
class LoadedCalibration {
 public:
  /// Reads the file without opening a driver. `listeners` must not be null. A calibration that is unreadable or from
  /// another machine is reported and not used. A missing file is not reported.
  static LoadedCalibration load(const std::string& path, const EventCallback& listeners);

  /// Returns the crossover; empty if it was not measured on this machine. Call `matches_device` after the device was
  /// opened to check that it was measured on this device.
  std::optional<std::uint64_t> crossover(const Operation& operation, Backend backend) const;
  /// Returns true if the values of this backend were measured on this device.
  bool matches_device(Backend backend, const std::string& device) const;
  /// Returns the event to emit if they were measured on another device.
  Event device_mismatch_event(Backend backend, const std::string& device) const;

 private:
  std::string path_;
  std::optional<Calibration> calibration_;
};

}  // namespace kiln::runtime
