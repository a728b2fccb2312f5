#pragma once

#include <cstdint>
#include <string>

#include <kiln/export.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>
#include <kiln/work.hpp>

namespace kiln::runtime {

/// What is to be decided about.
struct Request {
  std::uint64_t rows = 0;
  Residency residency = Residency::Host;
  /// Which device the rows are on, where they are on one.
  Backend device = Backend::Cpu;
};

/// Why a decision is what it is.
enum class Reason : unsigned char {
  Asked,        ///< the mode says so
  Resident,     ///< the rows are on a device, and stay there
  LargeEnough,  ///< at least as many rows as the crossover
  TooSmall,     ///< fewer
  NoDevice,     ///< no device is here for any variant
  NoVariant,    ///< no variant for a device that is here, or none that is deterministic, which was asked for
  OnlyVariant,  ///< there is no other
  Failed,       ///< the device's variant failed, and auto went to the processor
};
KILN_API const char* to_string(Reason reason);

/// Where something runs, and why. A value.
struct Decision {
  std::uint64_t number = 0;  ///< no other in this process has it
  const Operation* operation = nullptr;
  const Variant* variant = nullptr;
  Mode requested = Mode::Auto;
  Source source = Source::Default;  ///< of the mode
  Backend selected = Backend::Cpu;
  std::string device;                     ///< its name; empty for the processor
  Precision precision = Precision::Fp64;  ///< that is computed in
  Reason reason = Reason::Asked;
  std::string text;       ///< the reason in words, with the figures
  bool warm = true;       ///< everything that the variant compiles was ready
  bool fallback = false;  ///< auto would have gone to a device, and could not
  bool measured = false;  ///< the crossover is of a calibration of this machine
  std::uint64_t crossover = 0;
  std::uint64_t rows = 0;
  Residency residency = Residency::Host;
};

}  // namespace kiln::runtime
