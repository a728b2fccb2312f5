#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kiln/event.hpp>
#include <kiln/runtime/calibration.hpp>

namespace kiln::runtime {

/// How a device or a processor of this name is called in a calibration. Names come from drivers and are compared with
/// what was read back from JSON: only what no encoding changes stays.
std::string device_text(std::string name);

/// The calibration that is in force for this process. A value.
class Measured {
 public:
  /// Reads the file; opens no driver. `listeners` must be something. One that cannot be read, or is another machine's,
  /// is told and not used; none at all is neither.
  static Measured load(const std::string& path, const EventCallback& listeners);

  /// Nothing where it was not measured on this machine. Whether on this device is known when that was opened.
  std::optional<std::uint64_t> crossover(const Operation& operation, Backend backend) const;
  /// Whether the figures of this kind of device are this one's.
  bool is_of(Backend backend, const std::string& device) const;
  /// What is to be told where they are not.
  Event of_another_device(Backend backend, const std::string& device) const;

 private:
  std::string path_;
  std::optional<Calibration> calibration_;
};

}  // namespace kiln::runtime
