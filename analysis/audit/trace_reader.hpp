// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/event.hpp>
#include <kiln/result.hpp>

namespace kiln::audit {

/// An event of a trace.
struct RecordedEvent {
  std::uint64_t id = 0;  ///< in the order of emission
  double start_ms = 0;   ///< since the first event of the trace
  double end_ms = 0;
  std::uint64_t thread = 0;
  /// The time on the device, for launches and copies of a format that has it; otherwise both are 0.
  double device_start_ms = 0;
  double device_end_ms = 0;
  Event event;
};

/// The message of a wait that can be for another stream than the one of its event: foreign traces do not have the
/// stream of every wait.
inline constexpr const char* kUnknownStream = "an unknown stream";

/// The program that wrote a trace.
enum class TraceFormat : unsigned char {
  Kiln,    ///< kiln itself; docs/internals/trace-format.md
  Kineto,  ///< the profiler of PyTorch, as JSON
  Nsight,  ///< Nsight Systems, exported to SQLite
};
const char* to_string(TraceFormat format);

/// A parsed trace. Readers of other formats express its events as kiln's kinds, so that the rules are the same.
struct Trace {
  TraceFormat format = TraceFormat::Kiln;
  /// Kinds of evidence that a trace of this format can have and this one was recorded without: "memory allocations", …
  std::vector<std::string> not_recorded;
  std::string command;  ///< command line of the program; empty if not recorded
  std::string date;
  std::string process;    ///< name of the program
  std::uint64_t pid = 0;  ///< process id, which is also the id of its first thread
  /// The recorded thread names. A thread that only enqueued work on streams has none.
  std::map<std::uint64_t, std::string> threads;
  std::uint64_t dropped = 0;          ///< number of events that the program dropped
  std::uint64_t not_understood = 0;   ///< number of events of an unknown kind
  std::vector<RecordedEvent> events;  ///< by id
};

/// Parses a trace of any format, which is recognized by its content. Traces can come from other machines, so every
/// value is validated. Returns Code::Corrupt for bytes that are not a trace, Code::Unsupported for another version
/// (with its name) and for a compressed file, and Code::Unavailable for an export of Nsight Systems if libsqlite3 is
/// missing.
Result<Trace> parse_trace(std::string_view text);
Result<Trace> read_trace(const std::string& path);

}  // namespace kiln::audit
