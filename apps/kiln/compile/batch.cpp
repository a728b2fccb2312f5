// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/compile/batch.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "apps/kiln/compile/missing_header.hpp"
#include "apps/kiln/exit_code.hpp"
#include "core/unit_access.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::milliseconds kMaxPause{20};
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

std::vector<CompileOutcome> CompileBatch::run(const FinishedJob& finished) {
  on_finished_ = finished;
  outcomes_.resize(jobs_.size());
  if (console_.live()) costs_ = estimated_costs();
  Progress progress(console_, {"compiling", "units", jobs_.size(), std::accumulate(costs_.begin(), costs_.end(), 0.0)});
  if (jobs_.size() == 1) progress.at(jobs_.front().file + " for " + jobs_.front().target.name());
  // A single job needs no thread of the session if it is a hit.
  if (jobs_.size() > 1) {
    request_all();
    wait_for_units(progress);
  }
  std::vector<CompileOutcome> outcomes;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    take(i);
    outcomes.push_back(std::move(*outcomes_[i]));
    if (console_.live()) show(session_.status(), progress);
  }
  return outcomes;
}

// Takes the outcome of a job; waits for it if the job is not finished.
void CompileBatch::take(std::size_t job) {
  if (outcomes_[job]) return;
  const Job& one = jobs_[job];
  outcomes_[job] = CompileOutcome{one.file, one.target.name(), session_.resolve(one.unit, one.target), {}};
  if (on_finished_) on_finished_(job, *outcomes_[job]);
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

void CompileBatch::take_finished(const SessionStatus& status) {
  if (status.units.size() != requested_.size()) return;
  for (std::size_t i = 0; i < requested_.size(); ++i) {
    if (is_finished(status.units[i].state)) take(requested_[i]);
  }
}

// Takes the outcome of each unit when it finishes, until at most one is left, which `resolve` waits for without a
// pause. `resolve` would give a unit that is still queued a thread in addition to those of --jobs. If the session
// cannot start a thread, `resolve` compiles on this one.
void CompileBatch::wait_for_units(Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kMaxPause)) {
    const SessionStatus status = session_.status();
    if (console_.live()) show(status, progress);
    take_finished(status);
    std::size_t queued = 0;
    std::size_t running = 0;
    for (const UnitStatus& unit : status.units) {
      queued += unit.state == UnitStatus::State::Queued ? 1 : 0;
      running += unit.state == UnitStatus::State::Running ? 1 : 0;
    }
    const bool is_idle = queued == status.units.size() && std::chrono::steady_clock::now() - start > kStartTimeout;
    if ((queued == 0 && running <= 1) || is_idle) return;
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

FinishedJob print_finished(const std::vector<Job>& jobs, Console& console) {
  // The widths of the columns, because the lines are printed one by one. A single line needs none.
  std::vector<std::size_t> widths;
  if (jobs.size() > 1) {
    widths = {0, 0, 9, 9, 8};  // `from disk`, `123.4 KiB`, `12.34 ms`
    for (const Job& job : jobs) {
      widths[0] = std::max(widths[0], columns_of(printable(job.file)));
      widths[1] = std::max(widths[1], columns_of(printable(job.target.name())));
    }
  }
  return [widths, &console](std::size_t /*job*/, CompileOutcome& outcome) {
    if (!outcome.answer) return;
    const ResolvedArtifact& answer = *outcome.answer;
    std::string what = answer.origin == Origin::Compiled ? "compiled" : std::string("from ") + to_string(answer.origin);
    if (answer.origin == Origin::Bundle) what += ", for " + answer.artifact.target.name();
    console.print(table_text(
        {{outcome.file, outcome.target, what, format_bytes(answer.artifact.bytes.size()), time_text(answer.ms),
          "key " + answer.key.hex().substr(0, 12), outcome.output.empty() ? "" : "-> " + outcome.output}},
        {}, widths));
  };
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
    console.error(error, outcomes[i].file + " for " + targets, missing_header_hint(error));
    if (exit_code == kSuccess) exit_code = exit_code_of(error.code);
  }
  return exit_code;
}

}  // namespace kiln::cli
