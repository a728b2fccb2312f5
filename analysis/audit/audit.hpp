// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/audit/trace_reader.hpp"

namespace kiln::audit {

/// The severity of a finding; described in docs/reference/audit-rules.md.
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

/// A rule of the audit. docs/reference/audit-rules.md has one table row per rule.
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

/// The number of declared runs by location. `total` is the sum of the three locations.
struct DispatchCounts {
  std::uint64_t total = 0;
  std::uint64_t on_device = 0;      ///< on a GPU
  std::uint64_t on_cpu_device = 0;  ///< on a device that is a CPU (for example PoCL)
  std::uint64_t on_processor = 0;   ///< on the host, without a device
  std::uint64_t fallbacks = 0;
  /// Implicit operations with launches: work that the program declared no operation for. Not in `total`.
  std::uint64_t undeclared = 0;
  /// Returns the fraction of runs on a GPU; 0 if there are no runs.
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

/// The outcome of an audit.
enum class Verdict : unsigned char {
  Clean,         ///< no findings, and the evidence suffices
  Findings,      ///< at least one finding
  Inconclusive,  ///< no findings, but the trace lacks evidence
};
const char* to_string(Verdict verdict);

/// Evidence that the trace lacks.
struct MissingEvidence {
  std::string what;
  std::string action;    ///< how to record it
  bool decisive = true;  ///< false if an audit without it can still be clean
};

/// What the program did with the result of a read from the device.
enum class ReadUse : unsigned char {
  Terminal,         ///< the result leaves the device: no work of the operation follows, or the program says so
  AllocationFence,  ///< a scalar that sizes the next allocation
  Unclear,          ///< more work may depend on it, but nothing proves it
  Defect,           ///< evidence of a finding
  Tracing,          ///< made only to measure
};
const char* to_string(ReadUse use);

/// The reads from the device with one use, in one operation and stage.
struct HostReads {
  ReadUse use = ReadUse::Terminal;
  std::string operation;
  std::string stage;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_event = 0;  ///< id
};

/// The code that waited: who must change to avoid the waits.
struct WaitSum {
  std::uint64_t count = 0;
  double ms = 0;
  std::string operation;          ///< of the first wait
  std::string stage;              ///< of the first wait
  std::uint64_t first_event = 0;  ///< id
};
struct Waits {
  WaitSum caller;   ///< outside of declared operations, or directly in an outermost one that no Dispatch runs
  WaitSum wrapper;  ///< in a Dispatch, in a stage or in a nested operation
  WaitSum tracing;  ///< made only to measure
};

/// The answer to "is this CPU-shaped GPU code?".
enum class Answer : unsigned char { Supported, Disproved, NotEnoughEvidence };
const char* to_string(Answer answer);

/// The work of all runs of an operation.
struct OperationSum {
  std::string operation;
  bool implicit = false;  ///< true if the program declared no operation for this work
  std::uint64_t runs = 0;
  std::uint64_t on_device = 0;
  std::uint64_t on_cpu_device = 0;
  std::uint64_t on_processor = 0;
  std::uint64_t rows = 0;  ///< of the largest run
  std::uint64_t launches = 0;
  std::uint64_t waits = 0;  ///< without those made only to measure
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  /// The physical shape: the launches of a run in order, repetitions collapsed: "filter → compact → sort ×8". That of
  /// most runs.
  std::string shape;
  std::uint64_t shapes = 0;  ///< number of different shapes
};

/// A finding to fix first.
struct Target {
  const Rule* rule = nullptr;
  std::string operation;
  std::string stage;
};

/// The report of an audit. docs/reference/audit-rules.md describes each field.
struct Report {
  std::string command;
  std::string date;
  TraceFormat format = TraceFormat::Kiln;
  /// Device names; empty if no device was used. That of a CPU ends with "(CPU device, not a GPU)".
  std::vector<std::string> devices;
  std::uint64_t rows = 0;  ///< rows of the largest run
  std::vector<Selection> selections;
  enum class StayedOnDevice : unsigned char { NotApplicable, Yes, Unclear, No } stayed = StayedOnDevice::NotApplicable;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  bool stages_synchronized = false;  ///< true if stage times include the device
  std::vector<StageSum> stages;      ///< longest first
  std::vector<StageSum> longest;     ///< at most three
  DispatchCounts counts;
  std::vector<OperationSum> operations;  ///< by name
  std::uint64_t launches_on_gpu = 0;
  std::uint64_t launches_on_cpu_device = 0;
  Waits waits;
  std::vector<HostReads> reads;   ///< by use, operation and stage
  std::vector<Finding> findings;  ///< in the order in which to fix them
  std::vector<Target> targets;    ///< the first things to fix; at most three
  std::vector<MissingEvidence> missing;
  Answer cpu_shaped = Answer::NotEnoughEvidence;
  std::string cpu_shaped_evidence;
  std::string cause;   ///< what makes this path behave like CPU code
  std::string change;  ///< the smallest structural change that moves it back

  Verdict verdict() const;
  /// Returns true if there are no findings and the evidence suffices.
  bool clean() const { return verdict() == Verdict::Clean; }
  /// Returns the number of reads that more work may depend on.
  std::uint64_t unclear_reads() const;
  /// Returns true if decisive evidence is missing.
  bool lacks_evidence() const;
  /// Returns the highest severity of the findings; Low if there are none.
  Severity worst() const;
};

/// Returns true for a finding that limits a GPU path; the others are cleanups.
inline bool is_blocker(const Finding& finding) { return finding.rule->severity >= Severity::High; }

Report run_audit(const Trace& trace);

}  // namespace kiln::audit
