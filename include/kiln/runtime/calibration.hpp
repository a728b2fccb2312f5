#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/export.hpp>
#include <kiln/result.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>
#include <kiln/runtime/runtime.hpp>

namespace kiln::runtime {

/// What was measured of one backend at one size.
struct Timing {
  std::uint64_t rows = 0;
  double median_ms = 0;
  double spread = 0;  ///< (upper quartile − lower quartile) / median
  unsigned runs = 0;
};

/// One operation on one machine: from how many rows each device is worth it, and why.
struct Crossovers {
  std::string operation;
  std::map<Backend, std::uint64_t> rows;                ///< of each device; kNever where it never was
  std::map<Backend, std::vector<Timing>> evidence;      ///< the processor's too
  std::vector<std::pair<std::string, double>> longest;  ///< stages at the largest size on the device, in ms; three
};

/// The file that `kiln calibrate` writes; docs/calibration-format.md. A value.
struct KILN_API Calibration {
  std::string machine;  ///< processor and devices: it counts nowhere else
  std::string date;
  std::vector<Crossovers> operations;

  static Result<Calibration> parse(const std::string& text);
  std::string text() const;
  /// Nothing where the file is not there.
  static Result<std::optional<Calibration>> read(const std::string& path);
  /// What is in the file of other operations of this machine stays.
  Status write(const std::string& path) const;
  std::optional<std::uint64_t> crossover(const std::string& operation, Backend backend) const;
};

/// Where this machine's is looked for, by the runtime's options and the environment.
KILN_API std::string calibration_path(const RuntimeOptions& options);
/// What this machine is called in one.
KILN_API std::string machine_text(Session& session);

/// An operation to be timed: runs it once over so many rows, which it made before (inputs are remade when `rows`
/// changes). The mode is set by whoever calls it.
struct Trial {
  const Operation* operation = nullptr;
  std::function<Status(std::uint64_t rows)> prepare;
  std::function<Status()> run;
};

struct CalibrationOptions {
  std::vector<std::uint64_t> sizes = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000};
  double seconds_per_size = 0.5;
};

/// Times every variant of each on the devices that are here, sides interleaved, and sets the crossovers: the smallest
/// size from which on the device was never slower.
KILN_API Result<Calibration> calibrate(Runtime& runtime, const std::vector<Trial>& trials,
                                       const CalibrationOptions& options = {});

/// Whether this process was started by `kiln calibrate`, and where it wants the result: the program then calls
/// `calibrate`, writes it there and ends.
KILN_API std::optional<std::string> calibration_asked_for();

}  // namespace kiln::runtime
