// SPDX-License-Identifier: Apache-2.0
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
#include <kiln/session.hpp>

namespace kiln::runtime {

/// The measurement of one backend at one size.
struct Timing {
  std::uint64_t rows = 0;
  double median_ms = 0;
  double spread = 0;  ///< (upper quartile − lower quartile) / median
  unsigned runs = 0;
};

/// The calibration of one operation on one machine: the number of rows at or above which each device is faster, and the
/// measurements.
struct OperationCalibration {
  std::string operation;
  std::string date;                                ///< 2026-11-15T18:20:00Z
  std::map<Backend, std::uint64_t> thresholds;     ///< crossover of each device; kNoCrossover if it was never faster
  std::map<Backend, std::vector<Timing>> timings;  ///< all timings, including those of the CPU
  std::map<Backend, std::vector<StageTime>>
      longest_stages;              ///< longest stages at the largest size that ran; at most three
  std::vector<std::string> notes;  ///< remarks on the measurements
};

/// The machine of a calibration. A calibration is valid on its machine only.
struct KILN_API Machine {
  std::string processor;                   ///< model and number of cores that the process can use
  std::map<Backend, std::string> devices;  ///< names of the devices that were available

  /// Returns true if both can be the same machine: the CPU is equal, and so is every device of a kind that both have.
  bool matches(const Machine& other) const;
  std::string text() const;
};
/// Returns this machine without devices. Opens no driver.
KILN_API Machine this_processor();
/// Returns this machine. Opens the drivers that seem to be installed.
KILN_API Machine this_machine(Session& session);

/// The file that `kiln calibrate` writes; docs/internals/formats/small-files.md.
struct KILN_API Calibration {
  Machine machine;
  std::vector<OperationCalibration> operations;

  static Result<Calibration> parse(const std::string& text);
  std::string text() const;
  /// Returns no value if the file does not exist.
  static Result<std::optional<Calibration>> read(const std::string& path);
  /// Writes the file. Operations of the same machine that are already in the file and not in this calibration stay. A
  /// file of another machine is replaced. A file that cannot be read is an error.
  Status write(const std::string& path) const;

  const OperationCalibration* find(const std::string& operation) const;
  std::optional<std::uint64_t> crossover(const std::string& operation, Backend backend) const;
};

/// Returns the path of this machine's calibration file, from the options and the environment. Empty if there is none.
KILN_API std::string calibration_path(const RuntimeOptions& options);

/// An operation to measure.
struct CalibrationCase {
  const Operation* operation = nullptr;
  /// Creates the inputs on the host for the given number of rows.
  std::function<Status(std::uint64_t rows)> prepare;
  /// Runs the operation once on these inputs with the given runtime, whose mode and devices select the backend, and
  /// waits for the result.
  std::function<Status(Runtime& runtime)> run;
};

/// Options of `calibrate`.
struct CalibrationOptions {
  std::vector<std::uint64_t> sizes = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000};  ///< ascending
  /// Approximate time in seconds for one size of one operation. If five runs of each backend take longer, up to ten
  /// times this time.
  double seconds_per_size = 0.5;
  /// Number of additional sizes to measure where a device overtakes the CPU.
  unsigned refinements = 2;
};

/// Measures every variant of each operation on the available devices, with interleaved backends, and computes the
/// crossovers that lose the least at any measured size if the choice is by size alone. The measurement ignores the
/// settings of `runtime`: it creates one runtime of the same session for each backend. See docs/how-to/calibrate.md.
KILN_API Result<Calibration> calibrate(Runtime& runtime, const std::vector<CalibrationCase>& calibration_cases,
                                       const CalibrationOptions& options = {});

/// The request of `kiln calibrate` to the program that it started: call `calibrate` with these options, write the
/// result to `path`, and exit.
struct CalibrationRequest {
  std::string path;
  CalibrationOptions options;
};
KILN_API std::optional<CalibrationRequest> requested_calibration();

}  // namespace kiln::runtime
