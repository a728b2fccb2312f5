#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/audit/trace_reader.hpp"

namespace kiln::audit {

/// The severity of a finding; described in docs/audit.md.
enum class Severity : unsigned char {
  Low,       ///< cleanup or suspicion
  Medium,    ///< repeated cost that accumulates
  High,      ///< limits throughput or overlap
  Blocking,  ///< cannot scale as a GPU path
};
const char* to_string(Severity severity);

/// The checks of an audit, in this order. Findings of an earlier check rank before those of a later one.
enum class Check : unsigned char {
  RanOnDevice = 1,
  StayedOnDevice,
  NoSynchronization,
  NoHostBatching,
  LaunchShape,
  TraceComplete,
};
/// Returns the check as a question.
const char* to_string(Check step);

/// A rule of the audit. docs/audit.md has one table row per rule.
struct Rule {
  const char* name;  ///< stable, for scripts
  Check step;
  Severity severity;
  bool structural;     ///< true if the problem does not depend on size or run
  const char* cause;   ///< why the path behaves like CPU code; follows "because"
  const char* advice;  ///< suggested fix
};

using Rules = std::vector<const Rule*>;
/// Returns all rules of the audit.
Rules all_rules();

/// A finding for one operation, merged over all runs in which it occurred.
struct Finding {
  const Rule* rule = nullptr;
  std::string operation;  ///< empty for the whole trace
  std::string stage;      ///< stage of the first occurrence
  std::string subject;    ///< kernel or memory tier; distinguishes findings of the same rule
  std::string text;       ///< description with the values of the first run
  std::vector<std::uint64_t> dispatches;
  std::vector<std::uint64_t> events;  ///< ids of the first events
  std::uint64_t count = 0;            ///< number of all events of the finding
  std::uint64_t bytes = 0;
  double ms = 0;
  double first_ms = 0;     ///< time of the first occurrence
  bool structural = true;  ///< true if the rule is structural and applies to every run of the operation
};

/// The number of runs by location.
struct DispatchCounts {
  std::uint64_t total = 0;
  std::uint64_t on_device = 0;
  std::uint64_t on_processor = 0;
  std::uint64_t fallbacks = 0;
  /// Implicit operations with launches: work that the program declared no operation for. Not in `total`.
  std::uint64_t undeclared = 0;
  /// Returns the fraction of runs on a device; 0 if there are no runs.
  double acceleration() const { return total == 0 ? 0 : static_cast<double>(on_device) / static_cast<double>(total); }
};

struct StageSum {
  std::string operation;
  std::string stage;
  std::string where;  ///< host, opencl, cuda
  std::uint64_t runs = 0;
  double ms = 0;
};

/// The requested and the selected backend of an operation, and how often this occurred.
struct Selection {
  std::string operation;
  std::string requested;
  std::string selected;
  std::string reason;
  std::uint64_t count = 0;
};

/// The report of an audit. docs/audit.md describes each field.
struct Report {
  std::string command;
  std::string date;
  std::vector<std::string> devices;  ///< device names; empty if no device was used
  std::uint64_t rows = 0;            ///< rows of the largest run
  std::vector<Selection> selections;
  enum class StayedOnDevice : unsigned char { NotApplicable, Yes, No } stayed = StayedOnDevice::NotApplicable;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  bool stages_synchronized = false;  ///< true if stage times include the device
  std::vector<StageSum> longest;     ///< at most three
  DispatchCounts counts;
  std::vector<Finding> findings;  ///< in the order in which to fix them; the first three are the targets
  std::string cause;              ///< what makes this path behave like CPU code
  std::string change;             ///< the smallest structural change that moves it back

  /// Returns true if there are no findings.
  bool clean() const { return findings.empty(); }
  Severity worst() const;
};

Report run_audit(const Trace& trace);

}  // namespace kiln::audit
