// SPDX-License-Identifier: Apache-2.0
#include "events/trace_json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string_view>

namespace kiln {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Returns the length of the well-formed UTF-8 sequence at the front of `text`; 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    // Rejects overlong forms and surrogates.
    if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F)) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// Appends a JSON string. The tokenizer of Perfetto's importer supports the short escapes but not \u, and rejects the
// whole file at a control character, so characters without a short escape are replaced.
void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text.substr(i));
    const char c = text[i];
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (length == 0 || (length == 1 && (c < 0x20 || c == 0x7F))) {
          out += kReplacement;
        } else {
          out += text.substr(i, length);
        }
    }
    i += length == 0 ? 1 : length;
  }
  out += '"';
}

void append_time(std::string& out, const char* field, std::int64_t ticks) {
  char text[64];
  const std::int64_t rest = ticks % kTicksPerMicrosecond;
  const auto whole = static_cast<long long>(ticks / kTicksPerMicrosecond);
  if (rest == 0) {
    std::snprintf(text, sizeof text, ",\"%s\":%lld", field, whole);
  } else {
    std::snprintf(text, sizeof text, ",\"%s\":%lld.%03d", field, whole,
                  static_cast<int>(rest * 1000 / kTicksPerMicrosecond));
  }
  out += text;
}

// A writer of trace events. The fields that the importer reads come before any free text. Not thread-safe.
class Events {
 public:
  explicit Events(pid_t process) : process_(std::to_string(process)) {}

  void begin(char phase, std::int64_t ts, std::uint32_t track) {
    out_ += empty_ ? "{\"ph\":\"" : ",\n{\"ph\":\"";
    empty_ = false;
    out_ += phase;
    out_ += '"';
    append_time(out_, "ts", ts);
    out_ += ",\"pid\":" + process_ + ",\"tid\":" + std::to_string(track);
  }
  void time(const char* field, std::int64_t ticks) { append_time(out_, field, ticks); }
  void text(const char* field, std::string_view value) {
    name(field);
    append_string(out_, value);
  }
  void number(const char* field, const std::string& value) {
    name(field);
    out_ += value;
  }
  /// Omits zero, and values that do not fit into a double and would be read as another number.
  void count(const char* field, std::uint64_t value) {
    if (value != 0 && value < (std::uint64_t{1} << 53)) number(field, std::to_string(value));
  }
  void open_arguments() {
    name("args");
    out_ += '{';
  }
  void close_arguments() { out_ += '}'; }
  void end() { out_ += '}'; }
  std::string take() { return std::move(out_); }

 private:
  void name(const char* field) {
    if (out_.back() != '{') out_ += ',';
    out_ += '"';
    out_ += field;
    out_ += "\":";
  }
  const std::string process_;
  std::string out_;
  bool empty_ = true;
};

void metadata(Events& events, std::uint32_t track, const char* what, std::string_view name) {
  events.begin('M', 0, track);
  events.text("name", what);
  events.open_arguments();
  events.text("name", name);
  events.close_arguments();
  events.end();
}

// For kiln's own reader; viewers skip metadata that they do not know.
void write_trace_metadata(Events& events, std::uint32_t track, const TraceProcess& process) {
  events.begin('M', 0, track);
  events.text("name", "kiln_trace");
  events.open_arguments();
  events.text("name", kTraceFormat);
  if (!process.command.empty()) events.text("command", process.command);
  if (!process.date.empty()) events.text("date", process.date);
  events.count("dropped", process.dropped);
  events.close_arguments();
  events.end();
}

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

void work_arguments(Events& events, const OperationContext& work) {
  if (!work.operation.empty()) events.text("operation", work.operation);
  if (!work.stage.empty()) events.text("stage", work.stage);
  events.count("dispatch", work.dispatch);
  events.count("workflow", work.workflow);
  events.count("rows", work.rows);
  if (work.residency != Residency::Unknown) events.text("residency", to_string(work.residency));
  if (work.purpose != Purpose::Unspecified) events.text("purpose", to_string(work.purpose));
}

// The names of the arguments that are not details.
constexpr std::string_view kFixedArguments[] = {
    "id",           "category", "unit",       "target",      "origin",        "key",
    "message",      "ms",       "bytes",      "stream",      "task_id",       "requested",
    "selected",     "warm",     "name",       "grid_blocks", "block_threads", "suggested_block_threads",
    "shared_bytes", "pinned",   "cpu_device", "operation",   "stage",         "dispatch",
    "workflow",     "rows",     "residency",  "purpose",     "thread"};

bool is_detail_name(std::string_view name) {
  const auto valid = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), valid) &&
         std::find(std::begin(kFixedArguments), std::end(kFixedArguments), name) == std::end(kFixedArguments);
}

// Names come from extensions; one that is not valid would break the file or replace another argument, so its detail is
// omitted.
void detail_arguments(Events& events, const Event& event) {
  for (std::size_t i = 0; i < std::min(event.details.size(), Event::kMaxDetails); ++i) {
    const auto& [name, value] = event.details[i];
    if (is_detail_name(name)) events.text(name.c_str(), value);
  }
}

void arguments(Events& events, const TraceRecord& record, std::uint32_t track) {
  const Event& event = record.event;
  events.open_arguments();
  events.number("id", std::to_string(record.id));
  if (!event.category.empty()) events.text("category", event.category);
  if (!event.unit.empty()) events.text("unit", event.unit);
  if (!event.target.empty()) events.text("target", event.target);
  if (!event.origin.empty()) events.text("origin", event.origin);
  if (!event.key.empty()) events.text("key", event.key);
  if (!event.message.empty()) events.text("message", event.message);
  if (event.ms > 0 && std::isfinite(event.ms)) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", event.ms);
    events.number("ms", text);
  }
  events.count("bytes", event.bytes);
  if (event.stream != 0) events.text("stream", hex(event.stream));
  if (event.task_id != 0) events.text("task_id", hex(event.task_id));
  if (!event.requested.empty()) events.text("requested", event.requested);
  if (!event.selected.empty()) events.text("selected", event.selected);
  if (event.warm) events.number("warm", *event.warm ? "true" : "false");
  if (event.block_threads != 0) {
    events.count("grid_blocks", event.grid_blocks);
    events.count("block_threads", event.block_threads);
    events.count("suggested_block_threads", event.suggested_block_threads);
    events.count("shared_bytes", event.shared_bytes);
  }
  if (event.pinned) events.number("pinned", *event.pinned ? "true" : "false");
  if (event.cpu_device) events.number("cpu_device", "true");
  detail_arguments(events, event);
  work_arguments(events, event.context);
  if (track != static_cast<std::uint32_t>(record.thread)) events.number("thread", std::to_string(record.thread));
  events.close_arguments();
}

void arrow(Events& events, const TraceItem& mark) {
  if (mark.flow == TraceItem::Flow::None) return;
  const char phase = mark.flow == TraceItem::Flow::Start ? 's' : mark.flow == TraceItem::Flow::Step ? 't' : 'f';
  events.begin(phase, mark.start, mark.track);
  events.number("id", std::to_string(mark.flow_id));
  events.text("bp", "e");
  events.text("cat", "flow");
  events.text("name", "from request to use");
  events.end();
}

void draw(Events& events, const TraceItem& mark) {
  const Event& event = mark.record->event;
  events.begin(mark.is_slice ? 'X' : 'i', mark.start, mark.track);
  if (mark.is_slice) {
    events.time("dur", mark.duration());
  } else {
    events.text("s", "t");
  }
  const std::string kind = event_name(event);
  events.text("cat", kind);
  events.text("name", event.unit.empty() ? kind : kind + ' ' + event.unit);
  arguments(events, *mark.record, mark.track);
  events.end();
  arrow(events, mark);
}

}  // namespace

std::string trace_json(const TraceProcess& process, const TraceLayout& layout) {
  Events events(process.id);
  const auto main = static_cast<std::uint32_t>(process.id);
  metadata(events, main, "process_name", process.name.empty() ? "kiln" : process.name);
  write_trace_metadata(events, main, process);
  for (const TraceTrack& track : layout.tracks) metadata(events, track.id, "thread_name", track.name);
  for (const TraceItem& mark : layout.marks) draw(events, mark);
  if (process.dropped != 0) {
    events.begin('i', layout.marks.empty() ? 0 : layout.marks.back().start, main);
    events.text("s", "p");
    events.text("cat", "trace");
    events.text("name", "the trace is full: " + std::to_string(process.dropped) + " later events are missing");
    events.end();
  }
  return "{\"traceEvents\":[\n" + events.take() + "\n]}\n";
}

}  // namespace kiln
