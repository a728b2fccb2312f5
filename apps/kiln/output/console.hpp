// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/event.hpp>
#include <kiln/result.hpp>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/output/text.hpp"
#include "base/format.hpp"
#include "base/mutex.hpp"

namespace kiln::cli {

/// The output of the program: results on standard output, everything else on standard error. All output is Text, so
/// that control characters in names and logs do not reach the terminal. Thread-safe.
class Console {
 public:
  explicit Console(const Arguments& arguments);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Prints a result and adds a line end if it has none. It is written at once.
  void print(const Text& text);
  /// Prints an error if a result could not be written, for example because the disk is full. Returns whether all were
  /// written. A pipe that its reader has closed is not an error: `kiln cache ls | head`.
  bool finish();
  /// Returns false if nothing more can be printed: after an error, or if the reader has closed the pipe.
  bool is_writable() const;
  /// Prints `kiln: error: …`, then the compiler log. Adds a hint if the message names no next step and --quiet is not
  /// set; `hint` replaces the hint of the error's code.
  void error(const Error& error, const std::string& context = {}, const std::string& hint = {});
  /// Prints `kiln: warning: …` unless --quiet is set. Prints the same text only once.
  void warn(const std::string& message);
  /// Returns true if standard error is a terminal that can redraw a line and progress is enabled.
  bool live() const { return live_; }
  /// Returns the number of columns that a line on standard error can use without wrapping.
  std::size_t columns() const;
  /// Replaces the progress line; see Progress. An empty text removes it.
  void draw(const Text& text);
  /// Returns an event callback that prints warnings, and all other events with --verbose.
  EventCallback listener();

  bool styled() const { return styled_out_; }
  /// Returns true if standard output is a terminal that supports cursor control, with or without colors.
  bool drawable() const { return drawable_out_; }
  Text bold(const Text& text) const { return painted(styled_out_, "1", text); }
  Text green(const Text& text) const { return painted(styled_out_, "32", text); }
  Text yellow(const Text& text) const { return painted(styled_out_, "33", text); }
  Text red(const Text& text) const { return painted(styled_out_, "31", text); }

 private:
  static Text painted(bool styled, const char* code, const Text& text);
  void on_event(const Event& event);
  void note(const char* color, const char* word, const Text& message) KILN_REQUIRES(mutex_);
  void clear_line() KILN_REQUIRES(mutex_);

  const std::string command_;
  const bool verbose_;
  const bool quiet_;
  const bool drawable_out_;
  const bool styled_out_;
  const bool styled_err_;
  const bool live_;
  mutable Mutex mutex_;
  bool cache_unavailable_ KILN_GUARDED_BY(mutex_) = false;
  std::set<std::string> said_ KILN_GUARDED_BY(mutex_);
  Status written_ KILN_GUARDED_BY(mutex_);  // the first error of standard output
};

/// `0.12 ms`, `182 ms`, `2.31 s`
std::string time_text(double ms);
/// `2026-12-15`, for a number of days since 1970.
std::string day_text(std::uint64_t day);
/// `3 days ago`
std::string age_text(std::chrono::seconds age);
/// Returns a name or a message as one line; also escapes line ends and tabs.
inline std::string printable(std::string_view text) { return visible_text(text); }
/// Formats rows as aligned columns with two spaces between them. The first row can be a heading. Each cell is one line.
/// `widths` are the minimum widths of the first columns, for a table that is printed row by row.
std::string table_text(std::vector<std::vector<std::string>> rows, std::string_view indent = {},
                       std::vector<std::size_t> widths = {});

}  // namespace kiln::cli
