#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace kiln::cli {

/// How far something long is, and the line that says so. Knows nothing of terminals. One thread at a time.
class ProgressMeter {
 public:
  struct Options {
    std::string doing;    ///< `compiling`
    std::string noun;     ///< `units`; empty where nothing is counted
    std::size_t all = 0;  ///< how many there are; zero: nobody knows
    double all_cost = 0;  ///< what they cost together, by whatever measure `step` uses; zero: each costs as much
  };
  explicit ProgressMeter(Options options, const Clock& clock = system_clock());

  /// One more is done, which cost that much of `all_cost`.
  void step(double cost = 0);
  /// So many are done, of so many.
  void set(std::size_t done, std::size_t all);
  /// What it is at now.
  void at(std::string what) { at_ = std::move(what); }

  /// Whether it takes long enough for anybody to wonder.
  bool is_due() const;
  /// At most so many columns. What matters least goes first: the bar, what it is at, the rate.
  std::string line(std::size_t columns) const;
  /// By what the steps that are done took, weighed by their cost. Nothing where that is not known yet.
  std::optional<std::chrono::nanoseconds> left() const;

 private:
  std::chrono::nanoseconds passed() const { return clock_.steady() - start_; }

  Options options_;
  const Clock& clock_;
  const std::chrono::nanoseconds start_;
  std::size_t done_ = 0;
  double done_cost_ = 0;
  std::string at_;
};

/// The columns that a text takes on a terminal, as far as its code points tell.
std::size_t columns_of(std::string_view text);
/// As much of a text as fits, with `…` where something is missing.
std::string cut_to(std::string_view text, std::size_t columns);
/// `about 20 s`, `about 3 min`, `about 2 h`
std::string rough_time_text(std::chrono::nanoseconds time);

}  // namespace kiln::cli
