#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/event.hpp>
#include <kiln/result.hpp>

namespace kiln::audit {

/// An event as a trace has it.
struct RecordedEvent {
  std::uint64_t id = 0;  ///< in the order in which they were told
  double start_ms = 0;   ///< from the first event of the trace
  double end_ms = 0;
  std::uint64_t thread = 0;
  Event event;
};

/// A trace of kiln's (docs/trace.md), read. A value.
struct Trace {
  std::string command;  ///< how the program was called; empty where it did not say
  std::string date;
  std::string process;       ///< the program's name
  std::uint64_t number = 0;  ///< of the process, which is its first thread's, too
  /// The names of its threads, as far as it says them: not of one that only put things on streams.
  std::map<std::uint64_t, std::string> threads;
  std::uint64_t dropped = 0;          ///< events that the program did not keep
  std::uint64_t not_understood = 0;   ///< of a kind that this kiln does not know
  std::vector<RecordedEvent> events;  ///< by id
};

/// Traces come from other machines: nothing in one is believed before it is looked at. Code::Corrupt for what is no
/// trace of kiln's, Code::Unsupported for one of another version, by its name.
Result<Trace> parse_trace(std::string_view text);
Result<Trace> read_trace(const std::string& path);

}  // namespace kiln::audit
