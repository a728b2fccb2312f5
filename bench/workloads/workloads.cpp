// SPDX-License-Identifier: Apache-2.0
// The complete predefined workloads: on a machine with an empty cache, in a second process, from a bundle, and on a
// machine that gets everything from a remote store; each against NVRTC and the CCCL library alone, one unit after the
// other.
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/child_process.hpp"
#include "bench/support/scratch.hpp"
#include "bench/workloads/artifact_sources.hpp"
#include "bench/workloads/workload.hpp"

namespace kiln::bench {
namespace {

// A round of the cold sides takes up to a minute and a half.
constexpr std::size_t kColdRounds = 2;
constexpr std::size_t kWarmRounds = 30;
// The host work of the program between its request and its first get, in the rounds that measure the time blocked in
// gets.
constexpr char kWork[] = "500";
constexpr char kNoWork[] = "0";
constexpr std::size_t kWorkingRounds = 5;

/// The source of the artifacts. The limits are fractions of the time of the bare compilers: to the first result, to the
/// last, and in total, because the bare compilers run on the thread that needs them.
struct WorkloadSource {
  const char* name;
  double first;
  double last;
  double blocked;
};
// The first result of a cold machine comes after the compiler libraries were digested (200 MB), from a worker that has
// just started, while another worker compiles. This is reported, but it is not a promise.
constexpr WorkloadSource kCold{"cold", 4, 0.75, 0.75};
constexpr WorkloadSource kSecond{"second", 0.02, 0.005, 0.002};
constexpr WorkloadSource kBundle{"bundle", 0.02, 0.01, 0.002};
// A machine that compiles nothing and has never seen these compilers digests them once.
constexpr WorkloadSource kFleet{"fleet", 2, 0.25, 0.1};

/// The limit of a second process relative to the bare reading of its entries. Only the value of the whole workload is a
/// promise: a small workload still pays for opening a session and finding the compilers.
double floor_limit(const std::string& workload) { return workload == "all" ? 1.5 : workload == "sjoin" ? 2 : 15; }

/// In milliseconds, one value per round.
struct WorkloadTimes {
  std::vector<double> first;
  std::vector<double> last;
  std::vector<double> blocked;
};

class WorkloadRun {
 public:
  explicit WorkloadRun(std::string name) : name_(std::move(name)) {}

  Status prepare() {
    use_own_directories(scratch_);
    auto units = workload_named(name_);
    if (!units) return std::move(units).error();
    units_ = std::move(*units);
    auto compilers = bare_compilers();
    if (!compilers) return std::move(compilers).error();
    compilers_ = std::move(*compilers);
    return {};
  }

  /// Uses the cache of the last cold run.
  Status supply() {
    std::filesystem::create_directory(scratch_ / "supply");
    auto made = ArtifactSources::make(units_, cache_, scratch_ / "supply");
    if (!made) return std::move(made).error();
    supply_ = std::move(*made);
    return {};
  }

  Result<double> bare(WorkloadTimes& times) {
    std::vector<std::string> arguments{"bare", name_};
    arguments.insert(arguments.end(), compilers_.begin(), compilers_.end());
    return run(std::move(arguments), {}, times, units_.size());
  }
  Result<double> cold(const char* work, WorkloadTimes& times) {
    forget(cache_);
    return run({"kiln", name_, work}, {{"KILN_CACHE_DIR", cache_}}, times, units_.size());
  }
  Result<double> second(const char* work, WorkloadTimes& times) {
    return run({"kiln", name_, work}, {{"KILN_CACHE_DIR", cache_}, {"KILN_COMPILE", "never"}}, times, 0);
  }
  Result<double> bundle(const char* work, WorkloadTimes& times) {
    const std::string empty = scratch_ / "empty";
    forget(empty);
    return run({"kiln", name_, work},
               {{"KILN_CACHE_DIR", empty},
                {"KILN_COMPILE", "never"},
                {"KILN_BUNDLES", supply_->bundle()},
                {"KILN_TRUST", supply_->trust()}},
               times, 0);
  }
  Result<double> fleet(const char* work, WorkloadTimes& times) {
    const std::string empty = scratch_ / "empty";
    forget(empty);
    return run({"kiln", name_, work},
               {{"KILN_CACHE_DIR", empty},
                {"KILN_COMPILE", "never"},
                {"KILN_REMOTE", supply_->remote()},
                {"KILN_REMOTE_BUDGET", "10000"},  // a busy machine must be slow here instead of failing
                {"KILN_TRUST", supply_->trust()}},
               times, 0);
  }
  Result<double> floor(bool with_stats, WorkloadTimes& times) {
    std::vector<std::string> arguments{"floor", supply_->entries()};
    if (with_stats) arguments.push_back(supply_->looked_at());
    return run(std::move(arguments), {}, times, 0);
  }

 private:
  /// Removes a cache directory, and the host-local data outside it.
  void forget(const std::string& cache) {
    std::error_code ignored;
    for (const std::string& directory : {cache, scratch_ / "XDG_RUNTIME_DIR/kiln"}) {
      std::filesystem::remove_all(directory, ignored);
    }
  }

  /// Returns the time to the last result.
  Result<double> run(std::vector<std::string> arguments, const std::map<std::string, std::string>& variables,
                     WorkloadTimes& times, std::size_t compiled) {
    arguments.insert(arguments.begin(), beside_this_program("kiln-bench-workload"));
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const auto child = run_child(arguments);
    for (const auto& [name, value] : variables) unsetenv(name.c_str());
    if (!child) return child.error();
    long long first = 0;
    long long blocked = 0;
    std::size_t artifacts = 0;
    std::size_t bytes = 0;
    std::size_t its_compiled = 0;
    std::size_t found = 0;
    int nvrtc = 0;
    if (std::sscanf(child->said.c_str(), "%lld %lld %zu %zu %zu %zu %d", &first, &blocked, &artifacts, &bytes,
                    &its_compiled, &found, &nvrtc) != 7) {
      return make_error(Code::Internal, "unexpected output of kiln-bench-workload");
    }
    if (artifacts != units_.size() || its_compiled != compiled || (compiled == 0 && nvrtc != 0)) {
      return make_error(Code::Internal, name_ + ": unexpected run: " + child->said);
    }
    times.last.push_back(child->from_main_us / 1000);
    times.first.push_back(static_cast<double>(first) / 1e6);
    times.blocked.push_back(static_cast<double>(blocked) / 1e6);
    if (compiled > 0) {
      std::fprintf(stderr, "kiln-bench: workload_%s: %s: first %.2f s, last %.2f s, blocked %.2f s, %zu bytes\n",
                   name_.c_str(), arguments[1].c_str(), times.first.back() / 1000, times.last.back() / 1000,
                   times.blocked.back() / 1000, bytes);
    }
    return times.last.back();
  }

  const std::string name_;
  const Scratch scratch_;
  const std::string cache_ = scratch_ / "cache";
  Units units_;
  std::vector<std::string> compilers_;
  std::unique_ptr<ArtifactSources> supply_;
};

/// The time of `theirs` is measured once: it takes a minute, and is not repeated for each of ours.
Outcome workload_outcome(const std::string& name, double limit, const std::vector<double>& ours,
                         const std::vector<double>& theirs) {
  Plan plan;
  plan.name = name;
  plan.unit = "ms";
  plan.limit = limit;
  plan.small_spread = 0.05;
  if (ours.size() == theirs.size()) return outcome_of(plan, ours, theirs);
  return outcome_of(plan, ours, std::vector<double>(ours.size(), median(theirs)));
}

void add_outcomes(const std::string& name, const WorkloadSource& source, const WorkloadTimes& ours,
                  const WorkloadTimes& working, const WorkloadTimes& bare, Outcomes& outcomes) {
  const std::string its = name + "_" + source.name;
  outcomes.push_back(workload_outcome(its + "_first", source.first, ours.first, bare.first));
  outcomes.push_back(workload_outcome(its + "_last", source.last, ours.last, bare.last));
  outcomes.push_back(workload_outcome(its + "_blocked", source.blocked, working.blocked, bare.blocked));
}

Result<Outcomes> measure_workload(const std::string& which) {
  const std::string name = "workload_" + which;
  WorkloadRun run(which);
  if (Status ready = run.prepare(); !ready) return std::move(ready).error();
  WorkloadTimes bare, cold, cold_working;
  const auto cold_rounds = take_turns({[&] { return run.bare(bare); }, [&] { return run.cold(kNoWork, cold); },
                                       [&] { return run.cold(kWork, cold_working); }},
                                      kColdRounds);
  if (!cold_rounds) return cold_rounds.error();
  if (Status supplied = run.supply(); !supplied) return std::move(supplied).error();

  Outcomes outcomes;
  add_outcomes(name, kCold, cold, cold_working, bare, outcomes);
  WorkloadTimes second, bundle, fleet, floor, floor_with_stats;
  WorkloadTimes warm_up;
  if (auto once = run.second(kNoWork, warm_up); !once) return std::move(once).error();
  const auto warm_rounds =
      take_turns({[&] { return run.second(kNoWork, second); }, [&] { return run.floor(false, floor); },
                  [&] { return run.floor(true, floor_with_stats); }, [&] { return run.bundle(kNoWork, bundle); }},
                 kWarmRounds);
  if (!warm_rounds) return warm_rounds.error();
  const auto fleet_rounds = take_turns({[&] { return run.fleet(kNoWork, fleet); }}, kWorkingRounds);
  if (!fleet_rounds) return fleet_rounds.error();
  WorkloadTimes second_working, bundle_working, fleet_working;
  const auto working_rounds =
      take_turns({[&] { return run.second(kWork, second_working); }, [&] { return run.bundle(kWork, bundle_working); },
                  [&] { return run.fleet(kWork, fleet_working); }},
                 kWorkingRounds);
  if (!working_rounds) return working_rounds.error();

  add_outcomes(name, kSecond, second, second_working, bare, outcomes);
  outcomes.push_back(workload_outcome(name + "_second_of_cold", 0.005, second.last, cold.last));
  outcomes.push_back(workload_outcome(name + "_second_floor", floor_limit(which), second.last, floor.last));
  outcomes.push_back(
      workload_outcome(name + "_second_floor_stats", floor_limit(which), second.last, floor_with_stats.last));
  add_outcomes(name, kBundle, bundle, bundle_working, bare, outcomes);
  add_outcomes(name, kFleet, fleet, fleet_working, bare, outcomes);
  return outcomes;
}

}  // namespace

Result<Outcomes> workload_sjoin() { return measure_workload("sjoin"); }
Result<Outcomes> workload_all() { return measure_workload("all"); }
Result<Outcomes> workload_31() { return measure_workload("31"); }

}  // namespace kiln::bench
