#include "apps/kiln/batch.hpp"

#include <algorithm>
#include <thread>

#include "apps/kiln/exit_code.hpp"

namespace kiln::cli {

std::vector<CompileOutcome> Batch::run(unsigned threads) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t most = std::min<std::size_t>(threads, jobs_.size());
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < most; ++i) helpers.emplace_back([this] { work(); });
  work();
  for (std::thread& helper : helpers) helper.join();
  console_.progress({});
  return std::move(outcomes_);
}

void Batch::work() {
  for (std::size_t i = next_++; i < jobs_.size(); i = next_++) {
    const Job& job = jobs_[i];
    {
      const MutexLock lock(mutex_);
      running_.insert(i);
      show();
    }
    outcomes_[i] = {job.file, job.target.name(), toolbox_.get(job.unit, job.target, company(i)), {}};
    const MutexLock lock(mutex_);
    running_.erase(i);
    ++done_;
    show();
  }
}

// What has been at it for longest is what one waits for.
void Batch::show() {
  if (running_.empty()) return;
  const Job& job = jobs_[*running_.begin()];
  const std::string others = running_.size() > 1 ? " and " + std::to_string(running_.size() - 1) + " more" : "";
  console_.progress("kiln: " + bar_text(done_, jobs_.size()) + job.file + " for " + job.target.name() + others);
}

// How many of its kind come after a job.
std::size_t Batch::company(std::size_t index) const {
  const auto is_like = [&](const Job& other) {
    return other.unit.kind() == jobs_[index].unit.kind() && other.target == jobs_[index].target;
  };
  return static_cast<std::size_t>(
      std::count_if(jobs_.begin() + static_cast<std::ptrdiff_t>(index) + 1, jobs_.end(), is_like));
}

int print_errors(const std::vector<CompileOutcome>& outcomes, Console& console) {
  int exit_code = kDone;
  std::vector<bool> told(outcomes.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].answer || told[i]) continue;
    const Error& error = outcomes[i].answer.error();
    std::string targets = outcomes[i].target;
    for (std::size_t j = i + 1; j < outcomes.size(); ++j) {
      const CompileOutcome& other = outcomes[j];
      if (other.answer || other.file != outcomes[i].file || other.answer.error().message != error.message ||
          other.answer.error().log != error.log) {
        continue;
      }
      told[j] = true;
      targets += ", " + other.target;
    }
    console.error(error, outcomes[i].file + " for " + targets);
    if (exit_code == kDone) exit_code = exit_code_of(error.code);
  }
  return exit_code;
}

std::string bar_text(std::size_t done, std::size_t all) {
  constexpr std::size_t kWidth = 20;
  const std::size_t full = all == 0 ? 0 : done * kWidth / all;
  return '[' + std::string(full, '#') + std::string(kWidth - full, '.') + "] " + std::to_string(done) + '/' +
         std::to_string(all) + ' ';
}

}  // namespace kiln::cli
