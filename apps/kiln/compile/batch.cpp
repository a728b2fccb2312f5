#include "apps/kiln/compile/batch.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

#include "apps/kiln/exit_code.hpp"

namespace kiln::cli {

std::vector<CompileOutcome> CompileBatch::run(unsigned threads) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t maximum = std::min<std::size_t>(threads, jobs_.size());
  if (console_.live()) estimate_costs();
  Progress progress(console_, {"compiling", "units", jobs_.size(), std::accumulate(costs_.begin(), costs_.end(), 0.0)});
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < maximum; ++i) helpers.emplace_back([&] { work(progress); });
  work(progress);
  for (std::thread& helper : helpers) helper.join();
  return std::move(outcomes_);
}

void CompileBatch::work(Progress& progress) {
  for (std::size_t i = next_++; i < jobs_.size(); i = next_++) {
    const Job& job = jobs_[i];
    {
      const MutexLock lock(mutex_);
      running_.insert(i);
      show(progress);
    }
    outcomes_[i] = {job.file, job.target.name(), components_.get(job.unit, job.target, queued_similar(i)), {}};
    progress.step(costs_.empty() ? 0 : costs_[i]);
    const MutexLock lock(mutex_);
    running_.erase(i);
    show(progress);
  }
}

// Shows the running job with the lowest index, which is usually the one that has run longest.
void CompileBatch::show(Progress& progress) {
  if (running_.empty()) return;
  const Job& job = jobs_[*running_.begin()];
  const std::string others = running_.size() > 1 ? " and " + std::to_string(running_.size() - 1) + " more" : "";
  progress.at(job.file + " for " + job.target.name() + others);
}

// Estimates the cost of each job from its last build. Jobs without a recorded build get the average of the others.
void CompileBatch::estimate_costs() {
  if (components_.disks().empty() || jobs_.size() < 2) return;
  BuildHistory& history = components_.disks().front()->history();
  std::vector<double> costs(jobs_.size());
  double known = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto builds = history.builds(jobs_[i].unit.kind(), jobs_[i].unit.name());
    if (!builds) continue;
    const auto last = std::find_if(builds->begin(), builds->end(),
                                   [&](const Build& build) { return build.target == jobs_[i].target; });
    if (last == builds->end() || last->cost_ms <= 0) continue;
    costs[i] = last->cost_ms;
    known += last->cost_ms;
    ++count;
  }
  if (count == 0) return;
  std::replace(costs.begin(), costs.end(), 0.0, known / static_cast<double>(count));
  costs_ = std::move(costs);
}

// Returns the number of later jobs with the same kind and target.
std::size_t CompileBatch::queued_similar(std::size_t index) const {
  const auto is_like = [&](const Job& other) {
    return other.unit.kind() == jobs_[index].unit.kind() && other.target == jobs_[index].target;
  };
  return static_cast<std::size_t>(
      std::count_if(jobs_.begin() + static_cast<std::ptrdiff_t>(index) + 1, jobs_.end(), is_like));
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
