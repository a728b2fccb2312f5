#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/trace_reader.hpp"

namespace kiln::audit {

/// How much a finding matters; docs/audit.md has one line for each.
enum class Severity : unsigned char {
  Low,       ///< clean-up, or a suspicion
  Medium,    ///< repeated, and compounds
  High,      ///< caps throughput or overlap
  Blocking,  ///< cannot scale as a GPU path
};
const char* to_string(Severity severity);

/// What is asked, in this order: what fails early ranks before all that comes later.
enum class Step : unsigned char {
  RanOnDevice = 1,
  StayedThere,
  NoSynchronisation,
  NoHostBatching,
  LaunchesFit,
  EvidenceIsReal,
};
/// The question in words.
const char* to_string(Step step);

/// What a rule looks for. One for each line of the table in docs/audit.md.
struct Rule {
  const char* name;  ///< stable, for scripts
  Step step;
  Severity severity;
  bool structural;     ///< it would be there at any size and in every run …
  const char* cause;   ///< why the path behaves like CPU code, to be put behind "because"
  const char* advice;  ///< what to do
};

/// Something that was found, of one operation: all its runs in which it was found together.
struct Finding {
  const Rule* rule = nullptr;
  std::string operation;  ///< empty: of the whole trace
  std::string stage;      ///< where it was found first
  std::string subject;    ///< the kernel, the memory tier: what tells two findings of one rule apart
  std::string text;       ///< what was found, with the figures, of the first run
  std::vector<std::uint64_t> dispatches;
  std::vector<std::uint64_t> events;  ///< ids, the first few
  std::uint64_t count = 0;            ///< of all events that it stands on
  std::uint64_t bytes = 0;
  double ms = 0;
  double first_ms = 0;     ///< when it was seen first
  bool structural = true;  ///< … and was in every run of the operation
};

/// How often operations ran, and where.
struct DispatchCounts {
  std::uint64_t total = 0;
  std::uint64_t on_device = 0;
  std::uint64_t on_processor = 0;
  std::uint64_t fallbacks = 0;
  /// Which part of them ran on a device; zero where there were none.
  double acceleration() const { return total == 0 ? 0 : static_cast<double>(on_device) / static_cast<double>(total); }
};

struct StageSum {
  std::string operation;
  std::string stage;
  std::string where;  ///< host, opencl, cuda
  std::uint64_t runs = 0;
  double ms = 0;
};

/// What an operation asked for and what it got, and how often.
struct Selection {
  std::string operation;
  std::string requested;
  std::string selected;
  std::string reason;
  std::uint64_t times = 0;
};

/// A value; docs/audit.md says what each part means.
struct Report {
  std::string command;
  std::string date;
  std::vector<std::string> devices;  ///< by name; empty: none was used
  std::uint64_t rows = 0;            ///< of the largest run
  std::vector<Selection> selections;
  enum class Stayed : unsigned char { NothingThere, Yes, No } stayed = Stayed::NothingThere;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  bool stages_waited = false;     ///< stage times are the device's too, not the host's alone
  std::vector<StageSum> longest;  ///< three at most
  DispatchCounts counts;
  std::vector<Finding> findings;  ///< in the order in which they are to be mended; the first three are the targets
  std::string cause;              ///< what makes this path behave like CPU code
  std::string change;             ///< the smallest structural change that moves it back

  /// Of the worst finding.
  bool clean() const { return findings.empty(); }
  Severity worst() const;
};

Report examine(const Trace& trace);

}  // namespace kiln::audit
