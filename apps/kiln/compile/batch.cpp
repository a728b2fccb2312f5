#include "apps/kiln/compile/batch.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "apps/kiln/exit_code.hpp"
#include "core/unit_access.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::milliseconds kMaxPause{50};
// Time after which a session that has started no unit is considered unable to start a thread.
constexpr std::chrono::seconds kStartTimeout{2};

bool is_finished(UnitStatus::State state) {
  return state != UnitStatus::State::Queued && state != UnitStatus::State::Running;
}

}  // namespace

SessionOptions session_options(const Arguments& arguments, Console& console) {
  SessionOptions options;
  options.on_event = console.listener();
  options.max_background_compiles = arguments.jobs;
  return options;
}

std::vector<CompileOutcome> CompileBatch::run() {
  if (console_.live()) costs_ = estimated_costs();
  Progress progress(console_, {"compiling", "units", jobs_.size(), std::accumulate(costs_.begin(), costs_.end(), 0.0)});
  if (jobs_.size() == 1) progress.at(jobs_.front().file + " for " + jobs_.front().target.name());
  // A single job needs no thread of the session if it is a hit.
  if (jobs_.size() > 1) {
    request_all();
    wait_for_queue(progress);
  }
  std::vector<CompileOutcome> outcomes;
  for (const Job& job : jobs_) {
    outcomes.push_back({job.file, job.target.name(), session_.resolve(job.unit, job.target), {}});
    if (console_.live()) show(session_.status(), progress);
  }
  return outcomes;
}

// Requests all units of a target at once, so that the session knows how many similar units follow the first one.
void CompileBatch::request_all() {
  std::vector<bool> is_requested(jobs_.size());
  std::set<std::pair<Digest, std::string>> known;
  for (std::size_t first = 0; first < jobs_.size(); ++first) {
    Units units;
    for (std::size_t i = first; i < jobs_.size(); ++i) {
      const Job& job = jobs_[i];
      if (is_requested[i] || !(job.target == jobs_[first].target)) continue;
      is_requested[i] = true;
      if (!known.emplace(UnitAccess::identity(job.unit), job.target.name()).second) continue;
      units.push_back(job.unit);
      requested_.push_back(i);
    }
    if (!units.empty()) session_.request(units, jobs_[first].target);
  }
  finished_.resize(requested_.size());
}

// Waits until every unit is finished or being compiled. `resolve` gives a unit that is still queued a thread in
// addition to those of --jobs. If the session cannot start a thread, `resolve` compiles on this one.
void CompileBatch::wait_for_queue(Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kMaxPause)) {
    const SessionStatus status = session_.status();
    if (console_.live()) show(status, progress);
    const auto queued =
        static_cast<std::size_t>(std::count_if(status.units.begin(), status.units.end(), [](const UnitStatus& unit) {
          return unit.state == UnitStatus::State::Queued;
        }));
    const bool is_idle = queued == status.units.size() && std::chrono::steady_clock::now() - start > kStartTimeout;
    if (queued == 0 || is_idle) return;
    std::this_thread::sleep_for(pause);
  }
}

// Counts the finished units and shows the first running one, which is usually the one that has run longest.
void CompileBatch::show(const SessionStatus& status, Progress& progress) {
  if (status.units.size() != requested_.size()) return;
  const Job* shown = nullptr;
  std::size_t others = 0;
  for (std::size_t i = 0; i < requested_.size(); ++i) {
    const UnitStatus::State state = status.units[i].state;
    if (is_finished(state) && !finished_[i]) {
      finished_[i] = true;
      progress.step(costs_.empty() ? 0 : costs_[requested_[i]]);
    }
    if (state != UnitStatus::State::Running) continue;
    others += shown != nullptr ? 1 : 0;
    if (shown == nullptr) shown = &jobs_[requested_[i]];
  }
  if (shown == nullptr) return;
  const std::string more = others > 0 ? " and " + std::to_string(others) + " more" : "";
  progress.at(shown->file + " for " + shown->target.name() + more);
}

// Estimates the cost of each job from its last build. Jobs without a recorded build get the average of the others.
std::vector<double> CompileBatch::estimated_costs() const {
  if (jobs_.size() < 2) return {};
  std::vector<double> costs;
  double known = 0;
  std::size_t count = 0;
  for (const Job& job : jobs_) {
    const std::optional<double> cost = session_.recorded_cost_ms(job.unit, job.target);
    costs.push_back(cost.value_or(0));
    known += costs.back();
    count += cost ? 1 : 0;
  }
  if (count == 0) return {};
  std::replace(costs.begin(), costs.end(), 0.0, known / static_cast<double>(count));
  return costs;
}

int print_errors(const std::vector<CompileOutcome>& outcomes, Console& console) {
  int exit_code = kSuccess;
  std::vector<bool> reported(outcomes.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].answer || reported[i]) continue;
    const Error& error = outcomes[i].answer.error();
    std::string targets = outcomes[i].target;
    for (std::size_t j = i + 1; j < outcomes.size(); ++j) {
      const CompileOutcome& other = outcomes[j];
      if (other.answer || other.file != outcomes[i].file || other.answer.error().message != error.message ||
          other.answer.error().log != error.log) {
        continue;
      }
      reported[j] = true;
      targets += ", " + other.target;
    }
    console.error(error, outcomes[i].file + " for " + targets);
    if (exit_code == kSuccess) exit_code = exit_code_of(error.code);
  }
  return exit_code;
}

}  // namespace kiln::cli
