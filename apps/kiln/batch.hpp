#pragma once

#include <atomic>
#include <cstddef>
#include <set>
#include <vector>

#include "apps/kiln/console.hpp"
#include "apps/kiln/progress.hpp"
#include "apps/kiln/render_json.hpp"
#include "apps/kiln/unit_arguments.hpp"
#include "base/mutex.hpp"
#include "session/toolbox.hpp"

namespace kiln::cli {

/// Runs jobs on a few threads and shows on a terminal how far it is.
class Batch {
 public:
  Batch(const std::vector<Job>& jobs, Toolbox& toolbox, Console& console)
      : jobs_(jobs), toolbox_(toolbox), console_(console), outcomes_(jobs.size()) {}

  /// What became of each job, in the order of the jobs. `threads` of zero is one per core.
  std::vector<CompileOutcome> run(unsigned threads);

 private:
  void work(Progress& progress);
  void show(Progress& progress) KILN_REQUIRES(mutex_);
  void weigh();
  std::size_t company(std::size_t index) const;

  const std::vector<Job>& jobs_;
  Toolbox& toolbox_;
  Console& console_;
  std::vector<CompileOutcome> outcomes_;  // each is one thread's own
  std::vector<double> costs_;             // of each job, in ms; empty where nothing is known
  std::atomic<std::size_t> next_{0};
  Mutex mutex_;
  std::set<std::size_t> running_ KILN_GUARDED_BY(mutex_);
};

/// Tells what failed, one message for all targets that failed in the same way, which is how most source errors fail.
/// The exit code of the first; kDone where nothing did.
int print_errors(const std::vector<CompileOutcome>& outcomes, Console& console);

}  // namespace kiln::cli
