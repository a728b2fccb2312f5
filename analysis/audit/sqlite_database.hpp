// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

// Reads SQLite databases. libsqlite3 is opened at run time, because only the audit of such files needs it.
namespace kiln::audit {

struct SqliteLibrary;
struct SqliteBudget;

/// The rows of a table. Not thread-safe.
class SqliteRows {
 public:
  SqliteRows(SqliteRows&& other) noexcept;
  SqliteRows& operator=(SqliteRows&&) = delete;
  ~SqliteRows();

  /// Moves to the next row. Returns false at the end or after an error, which `status` then returns.
  bool next();
  /// Moves to the row with this id, for rows that were selected by id. Returns false if there is none, and from the
  /// first error on, which `status` then returns.
  bool find(std::int64_t id);
  Status status() const;

  /// Return the value of a column of the current row, by its place in the request. Missing values are 0 or empty.
  std::int64_t integer(int column) const;
  std::string_view text(int column) const;
  bool is_null(int column) const;

 private:
  friend class SqliteDatabase;
  SqliteRows(const SqliteLibrary& library, void* connection, void* statement)
      : library_(library), connection_(connection), statement_(statement) {}
  bool is_valid() const;
  void set_code(int code);

  const SqliteLibrary& library_;
  void* connection_;
  void* statement_;
  int code_ = 0;
  std::string message_;  // of the error, if there is one
};

/// A SQLite database that is only read, from bytes that any user can have written. Views, triggers and virtual tables
/// are not used, computed columns are refused, and steps and time are limited by the number of bytes. Not thread-safe.
class SqliteDatabase {
 public:
  /// Opens the database in these bytes, which must outlive it. Returns Code::Unavailable if libsqlite3 is missing.
  static Result<SqliteDatabase> open(std::string_view bytes);
  /// Returns true if these bytes begin like a SQLite database.
  static bool matches(std::string_view bytes);

  SqliteDatabase(SqliteDatabase&& other) noexcept;
  SqliteDatabase& operator=(SqliteDatabase&&) = delete;
  ~SqliteDatabase();

  /// Returns the names of a table's columns; empty if there is no such table.
  Result<std::vector<std::string>> columns(const char* table) const;
  /// Returns all rows of a table with these columns. Columns that the table does not have are null.
  Result<SqliteRows> rows(const char* table, const std::vector<const char*>& wanted) const;
  /// Returns one column of a table, for `SqliteRows::find`.
  Result<SqliteRows> rows_by_id(const char* table, const char* id, const char* column) const;

 private:
  SqliteDatabase(const SqliteLibrary& library, void* connection);
  Result<SqliteRows> prepare(const std::string& sql) const;

  const SqliteLibrary& library_;
  void* connection_;
  std::unique_ptr<SqliteBudget> budget_;  // the progress handler has its address
};

}  // namespace kiln::audit
