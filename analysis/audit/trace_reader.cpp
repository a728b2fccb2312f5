// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/trace_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include <kiln/runtime/events.hpp>

#include "analysis/audit/kineto_reader.hpp"
#include "analysis/audit/nsight_reader.hpp"
#include "analysis/audit/sqlite_database.hpp"
#include "analysis/audit/trace_limits.hpp"
#include "base/enum_names.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/json.hpp"
#include "events/trace_json.hpp"

namespace kiln::audit {
namespace {

constexpr std::size_t kMagicBytes = 512;  // of a file that is not JSON; JSON has no zeros

// Returns the enumerator with this name. Only the first enumerator can be called "unknown".
template <class Kind>
std::optional<Kind> named(std::string_view name, unsigned count) {
  for (unsigned value = 0; value < count; ++value) {
    if (name == to_string(static_cast<Kind>(value))) return static_cast<Kind>(value);
  }
  return std::nullopt;
}

constexpr unsigned kOwnKinds = static_cast<unsigned>(Event::Kind::Extension);
constexpr unsigned kResidencies = static_cast<unsigned>(Residency::Device) + 1;
constexpr unsigned kPurposes = static_cast<unsigned>(Purpose::Trace) + 1;

// Sets the kind of an event, and its type if it is an extension. Returns false if no kind has this name.
bool identify(Event& event, const std::string& name) {
  if (event.category.empty()) {
    if (const std::optional<Event::Kind> own = named<Event::Kind>(name, kOwnKinds)) {
      event.kind = *own;
      return true;
    }
    // Early traces have the runtime's events without a category.
    const auto is_name = [&name](const EventType& type) { return type.name == name; };
    if (std::none_of(runtime::events::kAll.begin(), runtime::events::kAll.end(), is_name)) return false;
    event.category = runtime::events::kDecided.category;
  }
  event.kind = Event::Kind::Extension;
  event.name = name;
  return true;
}

/// Parses a handle in the form 0x7f3a…
std::uint64_t handle_of(const std::string& text) {
  if (text.rfind("0x", 0) != 0 || text.size() > 18) return 0;
  return std::strtoull(text.c_str() + 2, nullptr, 16);
}

/// A streaming handler for the JSON parser. A tree of a 100 MB file would take ten times its size. Not thread-safe.
class Handler final : public JsonReader {
 public:
  bool null() override { return true; }
  bool boolean(bool value) override {
    if (!in_events() || !in_arguments()) return true;
    if (name_ == "warm") now_.event.warm = value;
    if (name_ == "pinned") now_.event.pinned = value;
    if (name_ == "cpu_device") now_.event.cpu_device = value;
    return true;
  }
  bool binary(binary_t& /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }  // kiln's values are never negative
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value), value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return number(value, 0); }
  bool string(string_t& value) override;
  bool start_object(std::size_t /*count*/) override { return open(); }
  bool start_array(std::size_t /*count*/) override { return open(); }
  bool key(string_t& value) override;
  bool end_object() override;
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const SortedJson::exception& /*error*/) override {
    return reject(Code::Corrupt, "invalid JSON (byte " + std::to_string(position) + ")");
  }

  /// Returns true if the text is JSON up to an event that a trace of kiln does not have at its place.
  bool is_foreign() const { return foreign_; }
  Result<Trace> take();

 private:
  // The depths of relevant values: members of an event, and of its arguments.
  static constexpr std::size_t kEvent = 3;
  static constexpr std::size_t kArguments = 4;

  bool open();
  bool number(double value, std::uint64_t count);
  void argument(const std::string& value);
  void argument(double value, std::uint64_t count);
  bool end_event();
  bool metadata();
  bool about();
  bool reject(Code code, std::string reason) {
    if (!error_) error_ = make_error(code, std::move(reason));
    return false;
  }
  bool in_events() const { return depth_ >= kEvent && top_ == "traceEvents"; }
  bool in_arguments() const { return depth_ == kArguments && member_ == "args"; }

  Trace trace_;
  std::optional<Error> error_;
  bool known_ = false;    // the kiln metadata was read
  bool foreign_ = false;  // an event came before it
  std::size_t depth_ = 0;
  std::string top_;     // current member of the outermost object
  std::string member_;  // current member of an event
  std::string name_;    // current member of its arguments

  // The event that is currently read.
  std::string phase_;
  std::string category_;
  std::string title_;
  std::string format_;
  std::string command_;
  std::string date_;
  std::uint64_t dropped_ = 0;
  std::uint64_t process_ = 0;
  RecordedEvent now_;
  double start_us_ = 0;
  double length_us_ = 0;
};

bool Handler::open() {
  if (++depth_ > kMaxDepth) return reject(Code::Corrupt, "it is nested too deeply");
  if (depth_ != kEvent || top_ != "traceEvents") return true;
  for (std::string* text : {&member_, &name_, &phase_, &category_, &title_, &format_, &command_, &date_}) text->clear();
  dropped_ = process_ = 0;
  now_ = {};
  start_us_ = length_us_ = 0;
  return true;
}

bool Handler::key(string_t& value) {
  if (value.size() > kMaxTextLength) return reject(Code::Corrupt, "it contains a name that is too long");
  if (depth_ == 1)
    top_ = std::move(value);
  else if (depth_ == kEvent)
    member_ = std::move(value);
  else if (depth_ == kArguments)
    name_ = std::move(value);
  return true;
}

bool Handler::string(string_t& value) {
  if (value.size() > kMaxTextLength) return reject(Code::Corrupt, "it contains a text that is too long");
  if (!in_events()) return true;
  if (in_arguments()) {
    argument(value);
  } else if (depth_ == kEvent) {
    if (member_ == "ph")
      phase_ = std::move(value);
    else if (member_ == "cat")
      category_ = std::move(value);
    else if (member_ == "name")
      title_ = std::move(value);
  }
  return true;
}

bool Handler::number(double value, std::uint64_t count) {
  if (!in_events() || !std::isfinite(value)) return true;
  if (in_arguments()) {
    argument(value, count);
  } else if (depth_ == kEvent) {
    if (member_ == "ts")
      start_us_ = std::max(0.0, value);
    else if (member_ == "dur")
      length_us_ = std::max(0.0, value);
    else if (member_ == "pid")
      process_ = count;
    else if (member_ == "tid" && now_.thread == 0)
      now_.thread = count;
  }
  return true;
}

void Handler::argument(const std::string& value) {
  Event& event = now_.event;
  const std::pair<const char*, std::string*> texts[] = {
      {"category", &event.category},
      {"unit", &event.unit},
      {"target", &event.target},
      {"origin", &event.origin},
      {"key", &event.key},
      {"message", &event.message},
      {"requested", &event.requested},
      {"selected", &event.selected},
      {"stage", &event.context.stage},
      {"operation", &event.context.operation},
      {"name", &format_},
      {"command", &command_},
      {"date", &date_},
  };
  bool known = name_ == "stream" || name_ == "task_id" || name_ == "residency" || name_ == "purpose";
  for (const auto& [name, to] : texts) {
    if (name_ == name) *to = value, known = true;
  }
  if (!known && event.details.size() < Event::kMaxDetails) event.details.emplace_back(name_, value);
  if (name_ == "stream") event.stream = handle_of(value);
  if (name_ == "task_id") event.task_id = handle_of(value);
  if (name_ == "residency") {
    event.context.residency = named<Residency>(value, kResidencies).value_or(Residency::Unknown);
  }
  if (name_ == "purpose") event.context.purpose = named<Purpose>(value, kPurposes).value_or(Purpose::Unspecified);
}

void Handler::argument(double value, std::uint64_t count) {
  Event& event = now_.event;
  const std::pair<const char*, std::uint64_t*> counts[] = {
      {"id", &now_.id},
      {"bytes", &event.bytes},
      {"grid_blocks", &event.grid_blocks},
      {"shared_bytes", &event.shared_bytes},
      {"rows", &event.context.rows},
      {"dispatch", &event.context.dispatch},
      {"workflow", &event.context.workflow},
      {"dropped", &dropped_},
      {"thread", &now_.thread},
  };
  for (const auto& [name, to] : counts) {
    if (name_ == name) *to = count;
  }
  const auto narrow = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
  if (name_ == "block_threads") event.block_threads = narrow;
  if (name_ == "suggested_block_threads") event.suggested_block_threads = narrow;
  if (name_ == "ms" && value > 0) event.ms = value;
}

bool Handler::end_object() {
  const bool event = depth_ == kEvent && top_ == "traceEvents";
  if (--depth_ == kEvent) member_.clear();  // members after the arguments do not belong to them
  return !event || end_event();
}

// Reads the metadata: the process and the names of threads.
bool Handler::metadata() {
  if (title_ == "kiln_trace") return about();
  if (title_ == "process_name") {
    trace_.process = std::move(format_);
    trace_.pid = process_;
  } else if (title_ == "thread_name" && now_.thread < kFirstOtherTrack && trace_.threads.size() < kMaxThreads) {
    trace_.threads.emplace(now_.thread, std::move(format_));
  }
  return true;
}

// Reads the metadata that kiln writes.
bool Handler::about() {
  if (format_ != kTraceFormat) {
    return reject(Code::Unsupported, "unsupported format '" + format_.substr(0, 40) + "', this kiln reads '" +
                                         kTraceFormat + "': use the kiln version of the program");
  }
  known_ = true;
  trace_.command = std::move(command_);
  trace_.date = std::move(date_);
  trace_.dropped = dropped_;
  return true;
}

bool Handler::end_event() {
  if (phase_ == "M") return metadata();
  // Metadata comes first, so a trace of another program is rejected at its first event, however large it is.
  if (!known_) {
    foreign_ = true;
    return reject(Code::Corrupt, "it is not a kiln trace");
  }
  if ((phase_ != "X" && phase_ != "i") || now_.id == 0) return true;
  if (trace_.events.size() >= kMaxEvents) return reject(Code::Corrupt, "it has more events than a kiln trace can have");
  if (!identify(now_.event, category_)) {
    ++trace_.not_understood;
    return true;
  }
  now_.start_ms = start_us_ / 1000;
  now_.end_ms = (start_us_ + length_us_) / 1000;
  trace_.events.push_back(std::move(now_));
  return true;
}

Result<Trace> Handler::take() {
  if (error_) return *std::move(error_);
  if (!known_) return make_error(Code::Corrupt, "it is not a kiln trace");
  std::vector<RecordedEvent>& events = trace_.events;
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  const auto twice = std::adjacent_find(events.begin(), events.end(),
                                        [](const RecordedEvent& a, const RecordedEvent& b) { return a.id == b.id; });
  if (twice != events.end()) {
    return make_error(Code::Corrupt, "duplicate event id " + std::to_string(twice->id));
  }
  return std::move(trace_);
}

}  // namespace

const char* to_string(TraceFormat format) {
  return enum_name<TraceFormat::Nsight>(format, {"kiln", "kineto", "nsight"});
}

Result<Trace> parse_trace(std::string_view text) {
  if (text.size() > kMaxTraceBytes) return make_error(Code::Corrupt, "it is larger than 256 MiB; record a shorter run");
  if (SqliteDatabase::matches(text)) return parse_nsight(text);
  if (text.substr(0, 2) == "\x1f\x8b") {
    return make_error(Code::Unsupported, "it is compressed; decompress it: gunzip --keep FILE");
  }
  if (text.substr(0, kMagicBytes).find('\0') != std::string_view::npos) {
    return make_error(
        Code::Corrupt,
        "it is binary, but not a SQLite database; if it is a report of Nsight Systems (.nsys-rep), export "
        "it: nsys export --type=sqlite FILE");
  }
  Handler handler;
  (void)parse_json(text, handler);
  return handler.is_foreign() ? parse_kineto(text) : handler.take();
}

Result<Trace> read_trace(const std::string& path) {
  if (const std::optional<FileStamp> stamp = stamp_of(path.c_str()); stamp && stamp->size > kMaxTraceBytes) {
    return make_error(Code::Corrupt,
                      path + " cannot be read as a trace: it is larger than 256 MiB; record a shorter run");
  }
  Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return std::move(bytes).error();
  if (!*bytes)
    return make_error(Code::Io, path + " does not exist; set 'trace' (KILN_TRACE) to make a program write a trace");
  Result<Trace> trace = parse_trace((*bytes)->view());
  if (trace) return trace;
  Error error = std::move(trace).error();
  const char* failed = error.code == Code::Unavailable ? " cannot be read: " : " is not a valid trace: ";
  error.message = path + failed + error.message;
  return error;
}

}  // namespace kiln::audit
