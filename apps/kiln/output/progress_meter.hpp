// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace kiln::cli {

/// The progress of a long operation, formatted as a line of text. Independent of terminals. Not thread-safe.
class ProgressMeter {
 public:
  struct Options {
    std::string doing;    ///< `compiling`
    std::string noun;     ///< `units`; empty if nothing is counted
    std::size_t all = 0;  ///< total number of steps; 0 means unknown
    double all_cost = 0;  ///< total cost, in the unit of `step`; 0 means equal cost per step
  };
  explicit ProgressMeter(Options options, const Clock& clock = system_clock());

  /// Records one finished step and its cost.
  void step(double cost = 0);
  /// Sets the number of finished steps and the total.
  void set(std::size_t done, std::size_t all);
  /// Sets the current item.
  void at(std::string what) { at_ = std::move(what); }

  /// Returns true if the operation has taken long enough to show its progress.
  bool is_due() const;
  /// Returns a line of at most `columns` columns. Drops the least important parts first: bar, current item, rate.
  std::string line(std::size_t columns) const;
  /// Estimates the remaining time from the finished steps, weighted by cost. Empty if it is not known yet.
  std::optional<std::chrono::nanoseconds> remaining() const;

 private:
  std::chrono::nanoseconds passed() const { return clock_.steady() - start_; }

  Options options_;
  const Clock& clock_;
  const std::chrono::nanoseconds start_;
  std::size_t done_ = 0;
  double done_cost_ = 0;
  std::string at_;
};

/// Returns the number of terminal columns of a text, estimated from its code points.
std::size_t columns_of(std::string_view text);
/// Truncates a text to `columns` columns and marks the cut with `…`.
std::string cut_to(std::string_view text, std::size_t columns);
/// `about 20 s`, `about 3 min`, `about 2 h`
std::string rough_time_text(std::chrono::nanoseconds time);

}  // namespace kiln::cli
