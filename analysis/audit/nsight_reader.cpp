// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/nsight_reader.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analysis/audit/foreign_trace.hpp"
#include "analysis/audit/sqlite_database.hpp"
#include "base/error.hpp"

namespace kiln::audit {
namespace {

// The tables, named as Nsight Systems names them.
constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kWaits = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr const char* kMemory = "CUDA_GPU_MEMORY_USAGE_EVENTS";
constexpr const char* kRanges = "NVTX_EVENTS";

constexpr std::int64_t kPushPopRange = 59;      // eventType of NVTX_EVENTS
constexpr std::int64_t kStreamSynchronize = 3;  // syncType
constexpr std::int64_t kPageable = 0;           // kinds of memory …
constexpr std::int64_t kPinned = 1;
constexpr std::int64_t kDeviceMemory = 2;
constexpr std::int64_t kManaged = 4;
constexpr int kThreadBits = 24;  // a globalTid is a process and a thread of 24 bits each

double to_ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }
std::uint64_t count_of(std::int64_t value) { return value > 0 ? static_cast<std::uint64_t>(value) : 0; }
std::uint32_t small_count_of(std::int64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count_of(value), UINT32_MAX));
}
std::uint64_t thread_of(std::int64_t global) {
  return static_cast<std::uint64_t>(global) & ((std::uint64_t{1} << kThreadBits) - 1);
}
std::uint64_t volume_of(const SqliteRows& rows, int first) {
  double volume = 1;
  for (int i = first; i < first + 3; ++i) {
    volume *= static_cast<double>(std::max<std::int64_t>(rows.integer(i), rows.is_null(i) ? 0 : 1));
  }
  return static_cast<std::uint64_t>(std::min(volume, 1e15));
}

/// Reads one export. Not thread-safe.
class NsightReader {
 public:
  NsightReader(const SqliteDatabase& database, SqliteRows texts) : database_(database), texts_(std::move(texts)) {}

  Result<Trace> read();

 private:
  // The functions that read a table call this after each row and at the end.
  bool more(SqliteRows& rows) {
    if (to_.is_full()) full_ = true;
    return !full_ && rows.next();
  }
  Status find_missing_columns();
  Status read_about();
  Status read_calls();
  Status read_kernels();
  Status read_copies();
  Status read_waits();
  Status read_memory();
  Status read_ranges();
  // Correlation ids are unique in a process.
  std::uint64_t key_of(std::int64_t global, std::int64_t correlation) const {
    const std::uint64_t process = has_processes_ ? static_cast<std::uint64_t>(global) >> kThreadBits << 32 : 0;
    return process ^ static_cast<std::uint32_t>(correlation);
  }
  std::uint32_t name_of(std::int64_t text_id);
  std::string_view text_of(std::int64_t text_id);
  CallKind kind_of(std::int64_t text_id);

  const SqliteDatabase& database_;
  SqliteRows texts_;
  ForeignTrace to_{TraceFormat::Nsight};
  std::unordered_map<std::int64_t, std::uint32_t> names_;  // by id of the text
  std::unordered_map<std::int64_t, CallKind> kinds_;       // by id of the function's name
  bool has_processes_ = false;                             // activities name their process; early exports do not
  bool full_ = false;
};

std::string_view NsightReader::text_of(std::int64_t text_id) {
  return texts_.find(text_id) ? texts_.text(0) : std::string_view();
}

std::uint32_t NsightReader::name_of(std::int64_t text_id) {
  const auto [at, fresh] = names_.try_emplace(text_id, 0U);
  if (fresh) at->second = to_.intern(text_of(text_id));
  return at->second;
}

CallKind NsightReader::kind_of(std::int64_t text_id) {
  const auto [at, fresh] = kinds_.try_emplace(text_id, CallKind::Other);
  if (fresh) at->second = call_kind(text_of(text_id));
  return at->second;
}

// A column that is missing reads as 0, so that an audit would find nothing: it counts as evidence that was not
// recorded.
Status NsightReader::find_missing_columns() {
  struct Table {
    const char* name;
    std::vector<const char*> columns;
  };
  const Table tables[] = {{"StringIds", {"id", "value"}},
                          {kCalls, {"start", "end", "globalTid", "correlationId", "nameId"}},
                          {kKernels, {"start", "end", "streamId", "correlationId", "demangledName"}},
                          {kCopies, {"start", "end", "streamId", "correlationId", "bytes", "copyKind"}}};
  for (const Table& table : tables) {
    const Result<std::vector<std::string>> there = database_.columns(table.name);
    if (!there) return there.error();
    std::vector<std::string>& missing = to_.trace().not_recorded;
    if (there->empty() && &table == tables) missing.push_back("the table StringIds");
    if (there->empty()) continue;
    for (const char* column : table.columns) {
      if (std::find(there->begin(), there->end(), column) != there->end()) continue;
      missing.push_back(std::string("the column ") + column + " of the table " + table.name);
    }
  }
  return {};
}

// Reads the devices, the date, the process and the names of threads.
Status NsightReader::read_about() {
  Result<SqliteRows> devices = database_.rows("TARGET_INFO_GPU", {"id", "name"});
  if (!devices) return devices.error();
  while (devices->next()) to_.add_device(count_of(devices->integer(0)), devices->text(1));
  if (Status status = devices->status(); !status) return status;
  Result<SqliteRows> start = database_.rows("TARGET_INFO_SESSION_START_TIME", {"utcTime"});
  if (!start) return start.error();
  if (start->next()) to_.trace().date = start->text(0).substr(0, 64);
  if (Status status = start->status(); !status) return status;
  Result<SqliteRows> threads = database_.rows("ThreadNames", {"nameId", "globalTid"});
  if (!threads) return threads.error();
  while (threads->next()) to_.add_thread(thread_of(threads->integer(1)), text_of(threads->integer(0)));
  return threads->status();
}

Status NsightReader::read_calls() {
  Result<SqliteRows> rows =
      database_.rows(kCalls, {"start", "end", "globalTid", "correlationId", "nameId", "returnValue"});
  if (!rows) return rows.error();
  while (more(*rows)) {
    if (rows->integer(5) != 0) continue;  // it failed and did nothing
    HostCall call;
    call.kind = kind_of(rows->integer(4));
    call.start_ms = to_ms(rows->integer(0));
    call.end_ms = std::max(call.start_ms, to_ms(rows->integer(1)));
    call.thread = thread_of(rows->integer(2));
    call.correlation = key_of(rows->integer(2), rows->integer(3));
    to_.add(call);
  }
  return rows->status();
}

Status NsightReader::read_kernels() {
  Result<SqliteRows> rows = database_.rows(
      kKernels, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName", "gridX",
                 "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"});
  if (!rows) return rows.error();
  while (more(*rows)) {
    Activity kernel;
    kernel.start_ms = to_ms(rows->integer(0));
    kernel.end_ms = std::max(kernel.start_ms, to_ms(rows->integer(1)));
    kernel.device = small_count_of(rows->integer(2));
    kernel.stream = count_of(rows->integer(3));
    kernel.correlation = key_of(rows->integer(5), rows->integer(4));
    kernel.name = name_of(rows->integer(6));
    kernel.grid_blocks = volume_of(*rows, 7);
    kernel.block_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(volume_of(*rows, 10), UINT32_MAX));
    kernel.shared_bytes = std::uint64_t{small_count_of(rows->integer(13))} + small_count_of(rows->integer(14));
    to_.add(kernel);
  }
  return rows->status();
}

constexpr std::int64_t kHostToHost = 9;  // copyKind

// Returns the direction of a copyKind; nothing for an unknown one. Copies of arrays count as those of memory.
std::optional<CopyDirection> direction_of(std::int64_t kind) {
  switch (kind) {
    case 1:
    case 3:
    case 11: return CopyDirection::ToDevice;
    case 2:
    case 4:
    case 12: return CopyDirection::FromDevice;
    case 5:
    case 6:
    case 7:
    case 8:
    case 10:
    case 13: return CopyDirection::OnDevice;
    default: return std::nullopt;
  }
}

Status NsightReader::read_copies() {
  Result<SqliteRows> rows = database_.rows(kCopies, {"start", "end", "deviceId", "streamId", "correlationId",
                                                     "globalPid", "bytes", "copyKind", "srcKind", "dstKind"});
  if (!rows) return rows.error();
  while (more(*rows)) {
    if (rows->integer(7) == kHostToHost) continue;
    const std::optional<CopyDirection> direction = direction_of(rows->integer(7));
    if (!direction) {
      to_.add_unknown_copy();
      continue;
    }
    Activity copy;
    copy.kind = Activity::Kind::Copy;
    copy.direction = *direction;
    copy.start_ms = to_ms(rows->integer(0));
    copy.end_ms = std::max(copy.start_ms, to_ms(rows->integer(1)));
    copy.device = small_count_of(rows->integer(2));
    copy.stream = count_of(rows->integer(3));
    copy.correlation = key_of(rows->integer(5), rows->integer(4));
    copy.bytes = count_of(rows->integer(6));
    const int host = *direction == CopyDirection::ToDevice ? 8 : 9;
    if (!rows->is_null(host) && rows->integer(host) == kPinned) copy.pinned = 1;
    if (!rows->is_null(host) && rows->integer(host) == kPageable) copy.pinned = 0;
    to_.add(copy);
  }
  return rows->status();
}

Status NsightReader::read_waits() {
  Result<SqliteRows> rows = database_.rows(kWaits, {"correlationId", "globalPid", "streamId", "syncType", "deviceId"});
  if (!rows) return rows.error();
  while (more(*rows)) {
    const std::int64_t stream = rows->integer(2);
    if (rows->integer(3) != kStreamSynchronize || stream < 0 || stream >= UINT32_MAX) continue;
    to_.add_wait_stream(key_of(rows->integer(1), rows->integer(0)), small_count_of(rows->integer(4)), count_of(stream));
  }
  return rows->status();
}

Status NsightReader::read_memory() {
  Result<SqliteRows> rows = database_.rows(kMemory, {"correlationId", "globalPid", "bytes", "memKind"});
  if (!rows) return rows.error();
  while (more(*rows)) {
    const std::int64_t kind = rows->integer(3);
    if (kind != kDeviceMemory && kind != kManaged) continue;
    to_.add_allocation_size(key_of(rows->integer(1), rows->integer(0)), count_of(rows->integer(2)));
  }
  return rows->status();
}

// A range has its text, or the id of it. Frameworks name the ranges of their operators "aten::add, seq = 7".
Status NsightReader::read_ranges() {
  Result<SqliteRows> rows = database_.rows(kRanges, {"start", "end", "eventType", "text", "textId", "globalTid"});
  if (!rows) return rows.error();
  while (more(*rows)) {
    if (rows->is_null(1) || (!rows->is_null(2) && rows->integer(2) != kPushPopRange)) continue;
    NamedRange range;
    range.start_ms = to_ms(rows->integer(0));
    range.end_ms = to_ms(rows->integer(1));
    if (range.end_ms < range.start_ms) continue;
    const std::string_view text = rows->is_null(3) ? text_of(rows->integer(4)) : rows->text(3);
    range.declared = text.substr(0, 6) != "aten::" && text.substr(0, 10) != "autograd::";
    range.name = to_.intern(text.substr(0, text.find(", seq = ")));
    range.thread = thread_of(rows->integer(5));
    to_.add(range);
  }
  return rows->status();
}

Result<Trace> NsightReader::read() {
  bool known = false;
  for (const char* table : {kCalls, kKernels, kCopies, kRanges, "TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME"}) {
    const Result<std::vector<std::string>> columns = database_.columns(table);
    if (!columns) return columns.error();
    known = known || !columns->empty();
    has_processes_ = has_processes_ || std::find(columns->begin(), columns->end(), "globalPid") != columns->end();
  }
  if (!known) return make_error(Code::Corrupt, "it is a database, but not an export of Nsight Systems");
  using Read = Status (NsightReader::*)();
  constexpr Read kAll[] = {&NsightReader::find_missing_columns, &NsightReader::read_about,  &NsightReader::read_calls,
                           &NsightReader::read_kernels,         &NsightReader::read_copies, &NsightReader::read_waits,
                           &NsightReader::read_memory,          &NsightReader::read_ranges};
  for (const Read part : kAll) {
    if (Status status = (this->*part)(); !status) return status.error();
    // Without its names the audit would find nothing.
    if (Status status = texts_.status(); !status) return status.error();
    if (full_) return make_error(Code::Corrupt, "it has more events than the audit can read");
  }
  return to_.take();
}

Result<Trace> read_export(std::string_view bytes) {
  const Result<SqliteDatabase> database = SqliteDatabase::open(bytes);
  if (!database) return database.error();
  Result<SqliteRows> texts = database->rows_by_id("StringIds", "id", "value");
  if (!texts) return texts.error();
  return NsightReader(*database, std::move(*texts)).read();
}

}  // namespace

Result<Trace> parse_nsight(std::string_view bytes) {
  Result<Trace> trace = read_export(bytes);
  if (trace || trace.error().code != Code::Corrupt) return trace;
  Error error = std::move(trace).error();
  error.message += "; export the report again: nsys export --type=sqlite REPORT";
  return error;
}

}  // namespace kiln::audit
