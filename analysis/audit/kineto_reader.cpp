// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/kineto_reader.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "analysis/audit/foreign_trace.hpp"
#include "analysis/audit/trace_limits.hpp"
#include "base/error.hpp"
#include "base/json.hpp"

namespace kiln::audit {
namespace {

/// The categories of events that the reader uses. Profiles before 2022 have other names.
enum class Category : unsigned char { None, Operator, Annotation, Call, Kernel, Copy, Wait };

Category category_of(std::string_view name) {
  static constexpr std::pair<std::string_view, Category> kCategories[] = {
      {"cpu_op", Category::Operator},   {"Operator", Category::Operator}, {"user_annotation", Category::Annotation},
      {"cuda_runtime", Category::Call}, {"cuda_driver", Category::Call},  {"Runtime", Category::Call},
      {"kernel", Category::Kernel},     {"Kernel", Category::Kernel},     {"gpu_memcpy", Category::Copy},
      {"Memcpy", Category::Copy},       {"cuda_sync", Category::Wait},
  };
  for (const auto& [known, category] : kCategories) {
    if (known == name) return category;
  }
  return Category::None;
}

constexpr const char* kNotKnown =
    "it is neither a trace of kiln nor one of PyTorch's profiler; name a trace of kiln (KILN_TRACE), of PyTorch's "
    "profiler or of Nsight Systems";
constexpr double kNoNumber = -1;
constexpr double kMaxTime = 1e18;  // microseconds; a profile of today has 1e15 at most

/// The members of an event, and of its arguments, that the reader uses.
struct Fields {
  std::string phase;
  std::string category;
  std::string name;
  std::string text;  // args.name of metadata
  double ts_us = 0;
  double duration_us = 0;
  double process = 0;
  double thread = 0;
  double device = 0;
  double stream = kNoNumber;
  double correlation = 0;
  double bytes = 0;
  double device_type = kNoNumber;
  double shared_bytes = 0;
  double grid = 0;   // blocks; 0 if unknown
  double block = 0;  // threads; 0 if unknown
};

// Converts a number of the file. Doubles are exact up to 2^53, more than any count of a profile.
std::uint64_t count_of(double value) {
  return value > 0 ? static_cast<std::uint64_t>(std::min(value, 9007199254740992.0)) : 0;
}
std::uint32_t small_count_of(double value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count_of(value), UINT32_MAX));
}

/// A streaming handler for the JSON parser. Not thread-safe.
class KinetoHandler final : public JsonReader {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return number(value); }
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
    return reject("invalid JSON (byte " + std::to_string(position) + ")");
  }

  Result<Trace> take();

 private:
  // The depths of relevant values: members of an event or a device, of an event's arguments, and their elements.
  static constexpr std::size_t kEvent = 3;
  static constexpr std::size_t kArguments = 4;
  static constexpr std::size_t kElements = 5;

  bool open();
  bool number(double value);
  void number_argument(double value);
  bool end_event();
  void end_metadata();
  void end_memory();
  void end_range(bool declared);
  void end_call();
  Activity activity() const;
  void end_kernel();
  void end_copy();
  bool in_arguments() const { return depth_ == kArguments && member_ == "args"; }
  double end_us() const { return now_.ts_us + now_.duration_us; }
  bool reject(std::string reason) {
    if (!error_) error_ = make_error(Code::Corrupt, std::move(reason));
    return false;
  }

  ForeignTrace to_{TraceFormat::Kineto};
  std::optional<Error> error_;
  bool known_ = false;  // something was read that only PyTorch writes
  bool in_events_ = false;
  bool in_devices_ = false;
  std::size_t depth_ = 0;
  std::string member_;    // current member of an event or a device
  std::string argument_;  // current member of its arguments
  Fields now_;
};

bool KinetoHandler::open() {
  if (++depth_ > kMaxDepth) return reject("it is nested too deeply");
  if (depth_ != kEvent || (!in_events_ && !in_devices_)) return true;
  member_.clear();
  argument_.clear();
  now_ = {};
  return true;
}

bool KinetoHandler::key(string_t& value) {
  if (value.size() > kMaxTextLength) return reject("it contains a name that is too long");
  if (depth_ == 1) {
    in_events_ = value == "traceEvents";
    in_devices_ = value == "deviceProperties";
    known_ = known_ || in_devices_ || value == "schemaVersion";
  } else if (depth_ == kEvent) {
    member_ = std::move(value);
  } else if (depth_ == kArguments) {
    argument_ = std::move(value);
  }
  return true;
}

bool KinetoHandler::string(string_t& value) {
  if (!in_events_ && !in_devices_) return true;
  if (in_arguments()) {
    if (argument_ == "name" && value.size() <= kMaxTextLength) now_.text = std::move(value);
    return true;  // call stacks and shapes of any length are ignored
  }
  if (depth_ != kEvent) return true;
  if (value.size() > kMaxTextLength) return reject("it contains a text that is too long");
  if (member_ == "ph")
    now_.phase = std::move(value);
  else if (member_ == "cat")
    now_.category = std::move(value);
  else if (member_ == "name")
    now_.name = std::move(value);
  else if (member_ == "tid")
    now_.thread = static_cast<double>(std::strtoull(value.c_str(), nullptr, 10));  // early profiles
  return true;
}

bool KinetoHandler::number(double value) {
  if ((!in_events_ && !in_devices_) || !std::isfinite(value)) return true;
  if (in_arguments()) {
    number_argument(value);
  } else if (depth_ == kElements && member_ == "args") {
    // Dimensions are multiplied; a grid without blocks does not exist.
    double* size = argument_ == "grid" ? &now_.grid : argument_ == "block" ? &now_.block : nullptr;
    if (size != nullptr) *size = *size == 0 ? value : std::min(*size * std::max(value, 1.0), 1e15);
  } else if (depth_ == kEvent) {
    if (member_ == "ts")
      now_.ts_us = std::clamp(value, -kMaxTime, kMaxTime);
    else if (member_ == "dur")
      now_.duration_us = std::clamp(value, 0.0, kMaxTime);
    else if (member_ == "pid")
      now_.process = value;
    else if (member_ == "tid")
      now_.thread = std::fabs(value);
    else if (member_ == "id")
      now_.device = value;  // of the device properties
  }
  return true;
}

void KinetoHandler::number_argument(double value) {
  const std::pair<const char*, double*> numbers[] = {
      {"correlation", &now_.correlation},
      {"stream", &now_.stream},
      {"device", &now_.device},
      {"bytes", &now_.bytes},
      {"Bytes", &now_.bytes},
      {"Device Type", &now_.device_type},
      {"shared memory", &now_.shared_bytes},
  };
  for (const auto& [name, to] : numbers) {
    if (argument_ == name) *to = value;
  }
}

bool KinetoHandler::end_object() {
  const bool event = depth_ == kEvent;
  if (--depth_ == kEvent) member_.clear();  // members after the arguments do not belong to them
  if (!event) return true;
  if (in_devices_) to_.add_device(count_of(now_.device), now_.name);
  return !in_events_ || end_event();
}

bool KinetoHandler::end_event() {
  if (now_.phase == "M") {
    end_metadata();
  } else if (now_.phase == "i" && now_.name == "[memory]") {
    end_memory();
  } else if (now_.phase == "X") {
    const Category category = category_of(now_.category);
    known_ = known_ || category != Category::None;
    if (category == Category::Operator) end_range(now_.name.rfind("ProfilerStep#", 0) == 0);
    if (category == Category::Annotation) end_range(true);
    if (category == Category::Call) end_call();
    if (category == Category::Kernel) end_kernel();
    if (category == Category::Copy) end_copy();
    if (category == Category::Wait && now_.stream >= 0 && now_.name == "Stream Sync") {
      to_.add_wait_stream(count_of(now_.correlation), small_count_of(now_.device), count_of(now_.stream));
    }
  }
  if (to_.is_full()) return reject("it has more events than the audit can read");
  return known_ || now_.phase == "M" || reject(kNotKnown);
}

// A process is the program if its id is the thread's; the tracks of devices are processes too.
void KinetoHandler::end_metadata() {
  Trace& trace = to_.trace();
  if (now_.name == "process_name" && trace.process.empty()) {
    trace.process = now_.text;
    trace.pid = count_of(now_.process);
  } else if (now_.name == "thread_name" && now_.process == static_cast<double>(trace.pid)) {
    to_.add_thread(count_of(now_.thread), now_.text);
  }
}

// PyTorch's allocator reports each tensor; a negative size is released. Device type 1 is CUDA.
void KinetoHandler::end_memory() {
  if (now_.device_type != 1 || now_.bytes == 0) return;
  HostCall call;
  call.kind = now_.bytes > 0 ? CallKind::Allocate : CallKind::Release;
  call.pooled = true;
  call.start_ms = call.end_ms = now_.ts_us / 1000;
  call.thread = count_of(now_.thread);
  call.bytes = count_of(std::fabs(now_.bytes));
  to_.add(call);
}

void KinetoHandler::end_range(bool declared) {
  to_.add(NamedRange{now_.ts_us / 1000, end_us() / 1000, count_of(now_.thread), to_.intern(now_.name), declared});
}

void KinetoHandler::end_call() {
  HostCall call;
  call.kind = call_kind(now_.name);
  call.start_ms = now_.ts_us / 1000;
  call.end_ms = end_us() / 1000;
  call.thread = count_of(now_.thread);
  call.correlation = count_of(now_.correlation);
  to_.add(call);
}

// Returns what all activities of the device have: the device, the stream, the call and the times.
Activity KinetoHandler::activity() const {
  Activity made;
  made.device = small_count_of(now_.device);
  made.stream = count_of(now_.stream);
  made.correlation = count_of(now_.correlation);
  made.start_ms = now_.ts_us / 1000;
  made.end_ms = end_us() / 1000;
  return made;
}

void KinetoHandler::end_kernel() {
  Activity kernel = activity();
  kernel.name = to_.intern(now_.name);
  kernel.grid_blocks = count_of(now_.grid);
  kernel.block_threads = small_count_of(now_.block);
  kernel.shared_bytes = count_of(now_.shared_bytes);
  to_.add(kernel);
}

// The name has the direction and the kinds of memory: "Memcpy HtoD (Pageable -> Device)"; of HIP "CopyHostToDevice".
void KinetoHandler::end_copy() {
  Activity copy = activity();
  const auto has = [this](const char* part) { return now_.name.find(part) != std::string::npos; };
  if (has("HtoH") || has("HostToHost")) return;
  copy.kind = Activity::Kind::Copy;
  if (has("HtoD") || has("HtoA") || has("HostToDevice")) {
    copy.direction = CopyDirection::ToDevice;
  } else if (has("DtoH") || has("AtoH") || has("DeviceToHost")) {
    copy.direction = CopyDirection::FromDevice;
  } else if (!has("DtoD") && !has("PtoP") && !has("AtoA") && !has("AtoD") && !has("DtoA") && !has("DeviceToDevice")) {
    return to_.add_unknown_copy();
  }
  if (has("Pinned")) copy.pinned = 1;
  if (has("Pageable")) copy.pinned = 0;
  copy.bytes = count_of(now_.bytes);
  to_.add(copy);
}

Result<Trace> KinetoHandler::take() {
  if (error_ && known_) error_->message += "; export the profile again with export_chrome_trace of torch.profiler";
  if (error_) return *std::move(error_);
  if (!known_) return make_error(Code::Corrupt, kNotKnown);
  return to_.take();
}

}  // namespace

Result<Trace> parse_kineto(std::string_view text) {
  KinetoHandler handler;
  (void)parse_json(text, handler);
  return handler.take();
}

}  // namespace kiln::audit
