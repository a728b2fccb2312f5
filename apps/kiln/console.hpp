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
#include "base/mutex.hpp"
#include "base/words.hpp"

namespace kiln::cli {

/// Where the program speaks: results on standard output, everything else on standard error. Any thread.
class Console {
 public:
  explicit Console(const Arguments& arguments);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// A result, with its line end.
  void print(std::string_view text);
  /// `kiln: error: …`, below it what a compiler said, and below that, where the message does not say it and the user
  /// does not want quiet, what to do next.
  void error(const Error& error, const std::string& context = {});
  /// `kiln: warning: …`, unless the user wants quiet; the same text is said once.
  void warn(const std::string& message);
  /// Whether standard error is a terminal that can redraw a line, and somebody is to see it.
  bool live() const { return live_; }
  /// How wide a line on it may be so that it does not wrap.
  std::size_t columns() const;
  /// The line that says what is going on, replaced by the next; see Progress. Empty takes it away.
  void draw(const std::string& text);
  /// A listener for kiln's events: warnings always, everything else with --verbose.
  EventCallback listener();

  bool styled() const { return styled_out_; }
  /// Whether standard output is a terminal that can be drawn on, in colours or not.
  bool drawable() const { return drawable_out_; }
  std::string bold(std::string_view text) const { return style("1", text); }
  std::string green(std::string_view text) const { return style("32", text); }
  std::string yellow(std::string_view text) const { return style("33", text); }
  std::string red(std::string_view text) const { return style("31", text); }

 private:
  std::string style(const char* code, std::string_view text) const;
  void hear(const Event& event);
  void note(const char* colour, const char* word, const std::string& message) KILN_REQUIRES(mutex_);
  void clear_line() KILN_REQUIRES(mutex_);

  const std::string command_;
  const bool verbose_;
  const bool quiet_;
  const bool drawable_out_;
  const bool styled_out_;
  const bool styled_err_;
  const bool live_;
  mutable Mutex mutex_;
  bool line_shown_ KILN_GUARDED_BY(mutex_) = false;
  bool cache_unavailable_ KILN_GUARDED_BY(mutex_) = false;
  std::set<std::string> said_ KILN_GUARDED_BY(mutex_);
};

/// `0.12 ms`, `182 ms`, `2.31 s`
std::string time_text(double ms);
/// `2026-12-15`, of a day since 1970.
std::string day_text(std::uint64_t day);
/// `3 days ago`
std::string age_text(std::chrono::seconds age);
/// Without the control characters that a name from elsewhere may have: a terminal would obey them.
std::string printable(std::string text);
/// Columns under one another, two blanks between; the first row may be a heading.
std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view indent = {});

}  // namespace kiln::cli
