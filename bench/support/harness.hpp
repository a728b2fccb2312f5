// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

namespace kiln::bench {

/// The meaning of a limit: ours as a fraction of theirs, ours minus theirs, or ours as a fraction of an allowed time.
enum class Budget { Ratio, Difference, Time };

/// One result of a benchmark.
struct Outcome {
  std::string name;
  double ours = 0;    ///< median, in `unit`
  double theirs = 0;  ///< median, in `unit`
  double ratio = 0;   ///< median of ours/theirs of each round; for Budget::Difference, of ours − theirs
  double spread = 0;  ///< error of `ratio`, as a fraction of the limit: see `compare`
  std::size_t n = 0;  ///< rounds
  double limit = 0;   ///< maximum of `ratio`
  std::string unit;   ///< unit of ours and theirs
  bool settled = false;
  Budget budget = Budget::Ratio;

  bool within() const { return ratio <= limit; }
};

/// Two ways of doing the same work. A side does it once, or often enough for the clock, and returns the time in the
/// plan's unit, without preparation and cleanup. An error ends the benchmark.
struct Plan {
  using Side = std::function<Result<double>()>;

  std::string name;
  std::string unit = "us";
  double limit = 1;
  Side ours;
  Side theirs;
  Budget budget = Budget::Ratio;
  std::size_t warm_up = 3;
  std::size_t min_rounds = 15;
  std::size_t max_rounds = 400;
  double max_seconds = 10;
  /// Spread that counts as small.
  double small_spread = 0.02;
};

/// Returns the other side of a promise that is an absolute time (Budget::Time): a constant. With a limit of
/// 1, `ratio` is the used fraction.
inline Plan::Side allowed(double time) {
  return [time]() -> Result<double> { return time; };
}

/// Runs both sides in alternating order, and stops when the spread is small or a budget is used up. The spread is half
/// the width of the 95 % confidence interval of the median, estimated from the median absolute deviation, which a few
/// disturbed rounds do not affect.
Result<Outcome> compare(const Plan& plan);

/// Returns the outcome of given times, round by round; ignores the sides and budgets of the plan. For a single round
/// the spread is unknown and reported as large as the limit.
Outcome outcome_of(const Plan& plan, const std::vector<double>& ours, const std::vector<double>& theirs);

/// Runs many sides, each once per round, for results that share sides. The first side and the direction change with
/// each round. Returns the times of each side. After `hurry` it runs one round.
Result<std::vector<std::vector<double>>> take_turns(const std::vector<Plan::Side>& sides, std::size_t rounds);

/// Limits plans to a fifth of their time and half of their rounds, for a quick check instead of publication.
void hurry();

/// Limits the number of rounds of every plan and take_turns.
void at_most(std::size_t rounds);

double median(std::vector<double> values);

/// The nice value of workers, used for every side that is a process, so that other load on the machine slows all sides
/// equally.
constexpr int kNiceness = 5;

/// Returns the current CLOCK_MONOTONIC time in nanoseconds, which all processes share.
std::int64_t now_ns();

/// Returns the duration of a call in microseconds, averaged over `times` calls.
template <class F>
double microseconds_each(std::size_t times, F&& call) {
  const std::int64_t start = now_ns();
  for (std::size_t i = 0; i < times; ++i) call();
  return static_cast<double>(now_ns() - start) / 1000.0 / static_cast<double>(times);
}

/// The origin of a result. A result is one JSON object on one line, which bench/report reads.
struct Provenance {
  std::string benchmark;
  std::string meaning;  ///< description of the benchmark
  std::string command;  ///< command that prints this line again
};
std::string as_json(const Outcome& outcome, const Provenance& from);
/// Formats human-readable lines, the first of which is a heading.
std::string as_table(const std::vector<Outcome>& outcomes);

}  // namespace kiln::bench
