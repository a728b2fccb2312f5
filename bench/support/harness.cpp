// SPDX-License-Identifier: Apache-2.0
#include "bench/support/harness.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace kiln::bench {
namespace {

bool hurried = false;
std::size_t max_rounds = std::numeric_limits<std::size_t>::max();

double median_deviation(const std::vector<double>& values, double middle) {
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - middle));
  return median(std::move(deviations));
}

double spread_of(const std::vector<double>& values, double limit) {
  // 1.4826 converts the median absolute deviation to the sigma of a normal distribution. 1.2533 is the standard error
  // of the median relative to that of the mean. 1.96 is for 95 %.
  const double error = 1.4826 * 1.2533 * 1.96 / std::sqrt(static_cast<double>(values.size()));
  return median_deviation(values, median(values)) * error / limit;
}

double ratio_of(const Plan& plan, double ours, double theirs) {
  return plan.budget == Budget::Difference ? ours - theirs : ours / theirs;
}

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[1024];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

const char* name_of(Budget budget) {
  switch (budget) {
    case Budget::Ratio: return "ratio";
    case Budget::Difference: return "difference";
    case Budget::Time: return "time";
  }
  return "";
}

}  // namespace

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void hurry() { hurried = true; }

void at_most(std::size_t rounds) { max_rounds = rounds; }

Result<Outcome> compare(const Plan& full) {
  Plan plan = full;
  if (hurried) {
    plan.max_seconds /= 5;
    plan.min_rounds = std::max<std::size_t>(3, plan.min_rounds / 2);
  }
  plan.max_rounds = std::min(plan.max_rounds, max_rounds);
  plan.min_rounds = std::min(plan.min_rounds, max_rounds);
  for (std::size_t i = 0; i < plan.warm_up; ++i) {
    if (auto once = plan.theirs(); !once) return std::move(once).error();
    if (auto once = plan.ours(); !once) return std::move(once).error();
  }
  std::vector<double> ours, theirs, ratios;
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(plan.max_seconds * 1e9);
  while (ratios.size() < plan.max_rounds && (ratios.size() < plan.min_rounds || now_ns() < end)) {
    const bool ours_first = ratios.size() % 2 == 0;
    auto first = ours_first ? plan.ours() : plan.theirs();
    if (!first) return std::move(first).error();
    auto second = ours_first ? plan.theirs() : plan.ours();
    if (!second) return std::move(second).error();
    ours.push_back(ours_first ? *first : *second);
    theirs.push_back(ours_first ? *second : *first);
    ratios.push_back(ratio_of(plan, ours.back(), theirs.back()));
    if (ratios.size() < plan.min_rounds || ratios.size() % 10 != 0) continue;  // the check costs a sort
    if (spread_of(ratios, plan.limit) <= plan.small_spread) break;
  }
  return outcome_of(plan, ours, theirs);
}

Outcome outcome_of(const Plan& plan, const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.size() && i < theirs.size(); ++i) {
    ratios.push_back(ratio_of(plan, ours[i], theirs[i]));
  }
  Outcome outcome{.name = plan.name, .limit = plan.limit, .unit = plan.unit, .budget = plan.budget};
  outcome.ours = median(ours);
  outcome.theirs = median(theirs);
  outcome.ratio = median(ratios);
  outcome.spread = ratios.size() < 2 ? 1 : spread_of(ratios, plan.limit);
  outcome.settled = outcome.spread <= plan.small_spread;
  outcome.n = ratios.size();
  return outcome;
}

Result<std::vector<std::vector<double>>> take_turns(const std::vector<Plan::Side>& sides, std::size_t rounds) {
  std::vector<std::vector<double>> times(sides.size());
  for (std::size_t round = 0; round < (hurried ? 1 : std::min(rounds, max_rounds)); ++round) {
    for (std::size_t turn = 0; turn < sides.size(); ++turn) {
      const std::size_t way = round % 2 == 0 ? turn : sides.size() - 1 - turn;
      const std::size_t side = (way + round / 2) % sides.size();
      auto time = sides[side]();
      if (!time) return std::move(time).error();
      times[side].push_back(*time);
    }
  }
  return times;
}

std::string as_json(const Outcome& outcome, const Provenance& from) {
  return print(
      R"({"kind": "figure", "name": "%s", "ours": %.4g, "theirs": %.4g, "ratio": %.4g, "spread": %.3g, "n": %zu, )"
      R"("limit": %.4g, "unit": "%s", "settled": %s, "compared": "%s", "benchmark": "%s", "meaning": "%s", )"
      R"("command": "%s"})",
      outcome.name.c_str(), outcome.ours, outcome.theirs, outcome.ratio, outcome.spread, outcome.n, outcome.limit,
      outcome.unit.c_str(), outcome.settled ? "true" : "false", name_of(outcome.budget), from.benchmark.c_str(),
      from.meaning.c_str(), from.command.c_str());
}

std::string as_table(const std::vector<Outcome>& outcomes) {
  std::string table =
      print("%-38s %12s %12s %8s %8s %6s %7s\n", "", "ours", "theirs", "ratio", "limit", "rounds", "spread");
  for (const Outcome& outcome : outcomes) {
    table += print("%-38s %9.2f %-2s %9.2f %-2s %8.3f %8.3f %6zu %6.1f%%%s%s\n", outcome.name.c_str(), outcome.ours,
                   outcome.unit.c_str(), outcome.theirs, outcome.unit.c_str(), outcome.ratio, outcome.limit, outcome.n,
                   100 * outcome.spread, outcome.within() ? "" : "  over the limit",
                   outcome.settled ? "" : "  (the spread is large)");
  }
  return table;
}

}  // namespace kiln::bench
