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
  std::string date;                                   ///< 2026-11-15T18:20:00Z
  std::map<Backend, std::uint64_t> rows;              ///< of each device; kNever where it never was
  std::map<Backend, std::vector<Timing>> evidence;    ///< the processor's too
  std::map<Backend, std::vector<StageTime>> longest;  ///< at the largest size that it ran; at most three
  std::vector<std::string> notes;                     ///< what whoever reads the figures must know
};

/// On what was measured. Figures count nowhere else.
struct KILN_API Machine {
  std::string processor;                   ///< its model and how many cores the process may use
  std::map<Backend, std::string> devices;  ///< that were there, by name

  /// Whether both may be one: the same processor, and where both have a device of a kind, the same.
  bool agrees_with(const Machine& other) const;
  std::string text() const;
};
/// This one, with no device: opens nothing.
KILN_API Machine this_processor();
/// This one: opens the drivers that seem to be there.
KILN_API Machine this_machine(Session& session);

/// The file that `kiln calibrate` writes; docs/calibration-format.md. A value.
struct KILN_API Calibration {
  Machine machine;
  std::vector<Crossovers> operations;

  static Result<Calibration> parse(const std::string& text);
  std::string text() const;
  /// Nothing where the file is not there.
  static Result<std::optional<Calibration>> read(const std::string& path);
  /// What is in the file of other operations on this machine stays; one of another machine is replaced, and one that
  /// cannot be read is an error.
  Status write(const std::string& path) const;

  const Crossovers* find(const std::string& operation) const;
  std::optional<std::uint64_t> crossover(const std::string& operation, Backend backend) const;
};

/// Where this machine's is looked for, by the runtime's options and the environment; empty: nowhere.
KILN_API std::string calibration_path(const RuntimeOptions& options);

/// An operation to be timed.
struct Trial {
  const Operation* operation = nullptr;
  /// Makes the inputs, on the host, for so many rows.
  std::function<Status(std::uint64_t rows)> prepare;
  /// Runs it once over them by this runtime, whose mode and devices say where, until the result is there.
  std::function<Status(Runtime& runtime)> run;
};

struct CalibrationOptions {
  std::vector<std::uint64_t> sizes = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000};  ///< ascending
  /// About how long one size of one operation takes; where five runs of each side take longer, up to ten times that.
  double seconds_per_size = 0.5;
  /// How many further sizes are measured where a device overtakes the processor.
  unsigned refinements = 2;
};

/// Times every variant of each on the devices that are here, sides interleaved, and sets the crossovers: those by which
/// a choice by size alone loses least at any measured size. What it measures is not what the runtime has in force: for
/// each side it makes a runtime of the same session. docs/calibration.md.
KILN_API Result<Calibration> calibrate(Runtime& runtime, const std::vector<Trial>& trials,
                                       const CalibrationOptions& options = {});

/// What `kiln calibrate` wants of the program that it started: to `calibrate` so, to write it there, and to end.
struct CalibrationAsked {
  std::string path;
  CalibrationOptions options;
};
KILN_API std::optional<CalibrationAsked> calibration_asked_for();

}  // namespace kiln::runtime
