#pragma once

#include <atomic>
#include <cstddef>
#include <set>
#include <vector>

#include "apps/kiln/compile/unit_arguments.hpp"
#include "apps/kiln/output/console.hpp"
#include "apps/kiln/output/progress.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "base/mutex.hpp"
#include "session/components.hpp"

namespace kiln::cli {

/// A batch of compile jobs that runs on several threads and shows its progress on a terminal.
class CompileBatch {
 public:
  CompileBatch(const std::vector<Job>& jobs, Components& components, Console& console)
      : jobs_(jobs), components_(components), console_(console), outcomes_(jobs.size()) {}

  /// Runs all jobs and returns their outcomes in the order of the jobs. `threads` of 0 means one per core.
  std::vector<CompileOutcome> run(unsigned threads);

 private:
  void work(Progress& progress);
  void show(Progress& progress) KILN_REQUIRES(mutex_);
  void estimate_costs();
  std::size_t queued_similar(std::size_t index) const;

  const std::vector<Job>& jobs_;
  Components& components_;
  Console& console_;
  std::vector<CompileOutcome> outcomes_;  // each element is written by one thread
  std::vector<double> costs_;             // estimated cost of each job in ms; empty if no build is recorded
  std::atomic<std::size_t> next_{0};
  Mutex mutex_;
  std::set<std::size_t> running_ KILN_GUARDED_BY(mutex_);
};

/// Prints the failures, with one message for all targets of a file that failed with the same error, as most source
/// errors do. Returns the exit code of the first failure, or kSuccess if there is none.
int print_errors(const std::vector<CompileOutcome>& outcomes, Console& console);

}  // namespace kiln::cli
