#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

namespace kiln::bench {

/// What a limit is of: ours as a share of theirs, ours less theirs, or ours as a share of a time that is allowed.
enum class Allowance { Ratio, Difference, Time };

/// One line of a benchmark's answer.
struct Outcome {
  std::string name;
  double ours = 0;    ///< median, in `unit`
  double theirs = 0;  ///< likewise
  double ratio = 0;   ///< median of ours/theirs of each round; of an Allowance::Difference, of ours − theirs
  double spread = 0;  ///< how far `ratio` may be off, as a share of the limit: see `compare`
  std::size_t n = 0;  ///< rounds
  double limit = 0;   ///< what `ratio` may be
  std::string unit;   ///< of ours and theirs
  bool settled = false;
  Allowance allowance = Allowance::Ratio;

  bool within() const { return ratio <= limit; }
};

/// Two ways of doing the same thing. A side does it once, or so many times that a clock sees it, and returns how long
/// it took in the plan's unit; preparing and clearing up is not part of that. An error ends the benchmark.
struct Plan {
  using Side = std::function<Result<double>()>;

  std::string name;
  std::string unit = "us";
  double limit = 1;
  Side ours;
  Side theirs;
  Allowance allowance = Allowance::Ratio;
  std::size_t warm_up = 3;
  std::size_t least_rounds = 15;
  std::size_t most_rounds = 400;
  double most_seconds = 10;
  /// What counts as small.
  double small_spread = 0.02;
};

/// The other side of a promise that is a figure and no comparison (Allowance::Time): always this. With a limit of 1
/// `ratio` then says how much of it is used.
inline Plan::Side allowed(double time) {
  return [time]() -> Result<double> { return time; };
}

/// Runs both sides in turn, the order changing with each round so that neither always comes after the other, and stops
/// when the spread is small or a budget is used up. The spread is half the width of the 95 % confidence interval of
/// the median, estimated from the median absolute deviation, which a few disturbed rounds do not move.
Result<Outcome> compare(const Plan& plan);

/// The result of times that were taken already, round by round; of the plan the sides and the budgets do not count.
/// One round tells nothing of a spread, which then is said to be as large as the limit.
Outcome outcome_of(const Plan& plan, const std::vector<double>& ours, const std::vector<double>& theirs);

/// Runs many sides in turn, each once in a round, for results that have sides in common. Who begins changes with each
/// round, and so does the direction. Returns each side's times. When hurried it does one round.
Result<std::vector<std::vector<double>>> take_turns(const std::vector<Plan::Side>& sides, std::size_t rounds);

/// From here on plans get a fifth of their time and half of their rounds: to see that all is as it was, not to publish.
void hurry();

/// From here on no plan and no take_turns has more rounds than this: for whoever has so much time and no more.
void at_most(std::size_t rounds);

double median(std::vector<double> values);

/// That of workers, for every side that is a process: what else runs on the machine then takes as much from one as from
/// another.
constexpr int kNiceness = 5;

/// Now, in nanoseconds of CLOCK_MONOTONIC, which all processes share.
std::int64_t now_ns();

/// How long a call takes, in microseconds, by doing it `times` times.
template <class F>
double microseconds_each(std::size_t times, F&& call) {
  const std::int64_t start = now_ns();
  for (std::size_t i = 0; i < times; ++i) call();
  return static_cast<double>(now_ns() - start) / 1000.0 / static_cast<double>(times);
}

/// One JSON object on one line: what bench/report reads.
struct Provenance {
  std::string benchmark;
  std::string meaning;  ///< of the benchmark, for people
  std::string command;  ///< that prints this line again
};
std::string as_json(const Outcome& outcome, const Provenance& from);
/// Lines for people, the first being a heading.
std::string as_table(const std::vector<Outcome>& outcomes);

}  // namespace kiln::bench
