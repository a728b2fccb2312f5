// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <kiln/export.hpp>
#include <kiln/operation_context.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>

namespace kiln::runtime {

/// The input of a decision.
struct DispatchRequest {
  std::uint64_t rows = 0;
  Residency residency = Residency::Host;
  /// The device that the rows are on, if they are on one.
  Backend device = Backend::Cpu;
};

/// The reason for a decision.
enum class Reason : unsigned char {
  Requested,       ///< the mode requires it
  Resident,        ///< the rows are on a device and stay there
  AboveCrossover,  ///< at least as many rows as the crossover
  BelowCrossover,  ///< fewer rows than the crossover
  NoDevice,        ///< no device is available for any variant
  NoVariant,       ///< no variant for an available device, or none that is deterministic or in fp64 as required
  OnlyVariant,     ///< the operation has no other variant
  Failed,          ///< the variant on the device failed, and auto mode used the CPU
};
KILN_API const char* to_string(Reason reason);

/// The backend on which an operation runs, and the reason.
struct Decision {
  std::uint64_t id = 0;  ///< unique in this process
  const Operation* operation = nullptr;
  const Variant* variant = nullptr;
  Mode requested = Mode::Auto;
  SettingSource source = SettingSource::Default;  ///< source of the mode
  Backend selected = Backend::Cpu;
  std::string device;  ///< name of the device; empty for the CPU
  /// True if the device is a CPU, as with PoCL; also if the device that was not available or failed is one.
  bool cpu_device = false;
  Precision precision = Precision::Fp64;          ///< precision in which the variant computes
  Precision planned_precision = Precision::Fp64;  ///< precision that the plan asks for
  unsigned fp64_ratio = 0;                        ///< of the device; 0 if unknown or on the CPU
  Reason reason = Reason::Requested;
  std::string explanation;  ///< human-readable reason with the values
  bool warm = true;         ///< true if all units of the variant were ready
  bool fallback = false;    ///< true if auto mode preferred a device and could not use it
  bool measured = false;    ///< true if the crossover comes from a calibration of this machine
  std::uint64_t crossover = 0;
  std::uint64_t rows = 0;
  Residency residency = Residency::Host;
};

}  // namespace kiln::runtime
