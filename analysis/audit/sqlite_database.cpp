// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/sqlite_database.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/process/dynamic_library.hpp"

namespace kiln::audit {

/// The functions of libsqlite3 that the reader calls, and the values of its interface (sqlite.org/c3ref), which are
/// stable. Connections and statements are opaque.
struct SqliteLibrary {
  int (*open)(const char*, void**, int, const char*) = nullptr;
  int (*close)(void*) = nullptr;
  int (*deserialize)(void*, const char*, unsigned char*, std::int64_t, std::int64_t, unsigned) = nullptr;
  int (*configure)(void*, int, ...) = nullptr;
  int (*limit)(void*, int, int) = nullptr;
  void (*progress_handler)(void*, int, int (*)(void*), void*) = nullptr;
  int (*prepare)(void*, const char*, int, void**, const char**) = nullptr;
  int (*step)(void*) = nullptr;
  int (*reset)(void*) = nullptr;
  int (*finalize)(void*) = nullptr;
  int (*bind)(void*, int, std::int64_t) = nullptr;
  int (*column_type)(void*, int) = nullptr;
  int (*column_bytes)(void*, int) = nullptr;
  std::int64_t (*column_integer)(void*, int) = nullptr;
  const unsigned char* (*column_text)(void*, int) = nullptr;
  const char* (*message)(void*) = nullptr;

  static Result<const SqliteLibrary*> get();

 private:
  bool bind_all(const DynamicLibrary& library);
};

/// The work that is left for a database: steps of the virtual machine in thousands, and time. Not thread-safe.
struct SqliteBudget {
  std::uint64_t steps = 0;
  std::chrono::steady_clock::time_point deadline;

  bool spend() {
    if (steps == 0 || std::chrono::steady_clock::now() > deadline) return false;
    --steps;
    return true;
  }
};

namespace {

constexpr int kOk = 0;
constexpr int kInterrupted = 9;
constexpr int kRow = 100;
constexpr int kDone = 101;
constexpr int kNull = 5;                          // type of a value
constexpr int kOpenMemory = 0x2 | 0x80 | 0x8000;  // read and write, in memory, without locks
constexpr unsigned kReadOnly = 4;                 // of a deserialized database
constexpr int kEnableTrigger = 1003;              // settings of a connection …
constexpr int kDefensive = 1010;
constexpr int kEnableView = 1015;
constexpr int kTrustedSchema = 1017;
constexpr int kLimitLength = 0;  // … and its limits
constexpr int kLimitColumn = 2;
constexpr int kLimitAttached = 7;

constexpr int kMaxValueBytes = 1 << 20;  // of a text, and of the definition of a table
constexpr int kMaxColumns = 200;
constexpr int kStepsPerCall = 1000;  // of the progress handler
constexpr std::uint64_t kMinSteps = 10'000'000;
constexpr std::uint64_t kStepsPerByte = 20;  // reading a row takes about one step for each of its bytes

constexpr std::chrono::seconds kMinTime{20};  // a step can copy a text of the maximum length
constexpr std::chrono::milliseconds kTimePerMebibyte{250};
constexpr int kHiddenColumn = 6;  // of "pragma table_xinfo": 0 for a column that is stored

constexpr std::size_t kWriteVersion = 18;  // place in the header of a file; 2 in WAL mode

int count_work(void* budget) { return static_cast<SqliteBudget*>(budget)->spend() ? 0 : 1; }

std::string quoted(const char* name) { return '"' + std::string(name) + '"'; }

}  // namespace

bool SqliteLibrary::bind_all(const DynamicLibrary& library) {
  return library.bind(open, "sqlite3_open_v2") && library.bind(close, "sqlite3_close_v2") &&
         library.bind(deserialize, "sqlite3_deserialize") && library.bind(configure, "sqlite3_db_config") &&
         library.bind(limit, "sqlite3_limit") && library.bind(progress_handler, "sqlite3_progress_handler") &&
         library.bind(prepare, "sqlite3_prepare_v2") && library.bind(step, "sqlite3_step") &&
         library.bind(reset, "sqlite3_reset") && library.bind(finalize, "sqlite3_finalize") &&
         library.bind(bind, "sqlite3_bind_int64") && library.bind(column_type, "sqlite3_column_type") &&
         library.bind(column_bytes, "sqlite3_column_bytes") && library.bind(column_integer, "sqlite3_column_int64") &&
         library.bind(column_text, "sqlite3_column_text") && library.bind(message, "sqlite3_errmsg");
}

Result<const SqliteLibrary*> SqliteLibrary::get() {
  static const Result<SqliteLibrary> opened = []() -> Result<SqliteLibrary> {
    constexpr const char* kName = "libsqlite3.so.0";
    Result<DynamicLibrary> library = DynamicLibrary::open(kName);
    if (!library) {
      return make_error(Code::Unavailable, std::string(kName) + " cannot be opened: " + library.error().message +
                                               "; install it (Debian: libsqlite3-0) to read exports of Nsight Systems");
    }
    SqliteLibrary functions;
    if (functions.bind_all(*library)) return functions;
    return make_error(Code::Unavailable,
                      std::string(kName) + " cannot be used: a function is missing; install SQLite 3.36 or newer");
  }();
  if (!opened) return opened.error();
  return &*opened;
}

SqliteRows::SqliteRows(SqliteRows&& other) noexcept
    : library_(other.library_), connection_(other.connection_), statement_(std::exchange(other.statement_, nullptr)),
      code_(other.code_), message_(std::move(other.message_)) {}

SqliteRows::~SqliteRows() {
  if (statement_ != nullptr) library_.finalize(statement_);
}

bool SqliteRows::next() {
  set_code(library_.step(statement_));
  return code_ == kRow;
}

bool SqliteRows::find(std::int64_t id) {
  if (!is_valid()) return false;
  library_.reset(statement_);
  library_.bind(statement_, 1, id);
  return next();
}

bool SqliteRows::is_valid() const { return code_ == kOk || code_ == kRow || code_ == kDone; }

void SqliteRows::set_code(int code) {
  code_ = code;
  if (!is_valid()) message_ = library_.message(connection_);  // the connection's next call replaces it
}

Status SqliteRows::status() const {
  if (is_valid()) return {};
  if (code_ == kInterrupted) return make_error(Code::Corrupt, "reading it takes more work than its size explains");
  return make_error(Code::Corrupt, "it is not a valid database (" + message_ + ")");
}

std::int64_t SqliteRows::integer(int column) const { return library_.column_integer(statement_, column); }

std::string_view SqliteRows::text(int column) const {
  const unsigned char* text = library_.column_text(statement_, column);
  const int length = library_.column_bytes(statement_, column);
  if (text == nullptr || length <= 0) return {};
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(length)};
}

bool SqliteRows::is_null(int column) const { return library_.column_type(statement_, column) == kNull; }

bool SqliteDatabase::matches(std::string_view bytes) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  return bytes.substr(0, kMagic.size()) == kMagic;
}

SqliteDatabase::SqliteDatabase(const SqliteLibrary& library, void* connection)
    : library_(library), connection_(connection), budget_(std::make_unique<SqliteBudget>()) {}

SqliteDatabase::SqliteDatabase(SqliteDatabase&& other) noexcept
    : library_(other.library_), connection_(std::exchange(other.connection_, nullptr)),
      budget_(std::move(other.budget_)) {}

SqliteDatabase::~SqliteDatabase() {
  if (connection_ != nullptr) library_.close(connection_);
}

Result<SqliteDatabase> SqliteDatabase::open(std::string_view bytes) {
  if (bytes.size() > kWriteVersion && bytes[kWriteVersion] == 2) {
    return make_error(Code::Unsupported,
                      "it is in WAL mode, so that a part of it can be in another file; convert it: sqlite3 FILE "
                      "'pragma journal_mode = delete'");
  }
  const Result<const SqliteLibrary*> found = SqliteLibrary::get();
  if (!found) return found.error();
  const SqliteLibrary& library = **found;
  void* connection = nullptr;
  const int opened = library.open(":memory:", &connection, kOpenMemory, nullptr);
  SqliteDatabase database(library, connection);
  if (opened != kOk) return make_error(Code::Unavailable, "SQLite cannot open a database in memory");
  // SQLite does not write to a read-only database.
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (library.deserialize(connection, "main", data, size, size, kReadOnly) != kOk) {
    return make_error(Code::Corrupt, std::string("it is not a valid database (") + library.message(connection) + ")");
  }
  library.configure(connection, kDefensive, 1, nullptr);
  for (const int setting : {kEnableTrigger, kEnableView, kTrustedSchema}) {
    library.configure(connection, setting, 0, nullptr);
  }
  library.limit(connection, kLimitLength, kMaxValueBytes);
  library.limit(connection, kLimitColumn, kMaxColumns);
  library.limit(connection, kLimitAttached, 0);
  database.budget_->steps = (kMinSteps + kStepsPerByte * bytes.size()) / kStepsPerCall;
  database.budget_->deadline =
      std::chrono::steady_clock::now() + kMinTime + kTimePerMebibyte * static_cast<std::int64_t>(bytes.size() >> 20);
  library.progress_handler(connection, kStepsPerCall, count_work, database.budget_.get());
  return database;
}

Result<SqliteRows> SqliteDatabase::prepare(const std::string& sql) const {
  void* statement = nullptr;
  const int code = library_.prepare(connection_, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  SqliteRows rows(library_, connection_, statement);
  rows.set_code(code);
  if (Status status = rows.status(); !status) return status.error();
  return rows;
}

Result<std::vector<std::string>> SqliteDatabase::columns(const char* table) const {
  std::vector<std::string> names;
  // A virtual table has no root page.
  Result<SqliteRows> found = prepare(std::string("select 1 from sqlite_master where type = 'table' and rootpage > 0") +
                                     " and name = '" + table + "'");
  if (!found) return found.error();
  const bool exists = found->next();
  if (Status status = found->status(); !status) return status.error();
  if (!exists) return names;
  Result<SqliteRows> rows = prepare("pragma table_xinfo(" + quoted(table) + ")");
  if (!rows) return rows.error();
  while (rows->next()) {
    // The expression of a computed column can do any work in one step.
    if (rows->integer(kHiddenColumn) != 0) {
      return make_error(Code::Corrupt, std::string("its table ") + table + " has a computed column");
    }
    names.emplace_back(rows->text(1));
  }
  if (Status status = rows->status(); !status) return status.error();
  return names;
}

Result<SqliteRows> SqliteDatabase::rows(const char* table, const std::vector<const char*>& wanted) const {
  const Result<std::vector<std::string>> there = columns(table);
  if (!there) return there.error();
  std::string list;
  for (const char* name : wanted) {
    const bool has = std::find(there->begin(), there->end(), name) != there->end();
    list += (list.empty() ? "" : ", ") + (has ? quoted(name) : std::string("null"));
  }
  return prepare("select " + list + (there->empty() ? " limit 0" : " from " + quoted(table)));
}

Result<SqliteRows> SqliteDatabase::rows_by_id(const char* table, const char* id, const char* column) const {
  const Result<std::vector<std::string>> there = columns(table);
  if (!there) return there.error();
  const auto has = [&there](const char* name) { return std::find(there->begin(), there->end(), name) != there->end(); };
  if (!has(id) || !has(column)) return prepare("select null where ?1 is null and 0");
  return prepare("select " + quoted(column) + " from " + quoted(table) + " where " + quoted(id) + " = ?1 limit 1");
}

}  // namespace kiln::audit
