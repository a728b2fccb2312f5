// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <kiln/session.hpp>

#include "apps/kiln/compile/unit_arguments.hpp"
#include "apps/kiln/output/console.hpp"
#include "apps/kiln/output/progress.hpp"
#include "apps/kiln/output/render_json.hpp"

namespace kiln::cli {

/// Returns the options of a command's session: its events go to the console, and --jobs limits its parallel compiles.
SessionOptions session_options(const Arguments& arguments, Console& console);

/// Receives the outcome of the job with this index as soon as it is known.
using FinishedJob = std::function<void(std::size_t job, CompileOutcome& outcome)>;

/// A batch of compile jobs that a session runs in the background. Shows its progress on a terminal. Not thread-safe.
class CompileBatch {
 public:
  CompileBatch(const std::vector<Job>& jobs, Session& session, Console& console)
      : jobs_(jobs), session_(session), console_(console) {}

  /// Runs all jobs and returns their outcomes in the order of the jobs. Calls `finished` on this thread, in the order
  /// in which the jobs finish.
  std::vector<CompileOutcome> run(const FinishedJob& finished = {});

 private:
  void request_all();
  void take(std::size_t job);
  void take_finished(const SessionStatus& status);
  void wait_for_units(Progress& progress);
  void show(const SessionStatus& status, Progress& progress);
  std::vector<double> estimated_costs() const;

  const std::vector<Job>& jobs_;
  Session& session_;
  Console& console_;
  std::vector<std::size_t> requested_;  // index of each requested job, in the order of the session's status
  std::vector<double> costs_;           // estimated cost of each job in ms; empty if no build is recorded
  std::vector<bool> finished_;          // for each requested job: counted as finished in the progress
  FinishedJob on_finished_;
  std::vector<std::optional<CompileOutcome>> outcomes_;  // of each job, once it is known
};

/// Returns a function that prints one line for each job that succeeds, in aligned columns.
FinishedJob print_finished(const std::vector<Job>& jobs, Console& console);

/// Prints the failures, with one message for all targets of a file that failed with the same error, as most source
/// errors do. Returns the exit code of the first failure, or kSuccess if there is none.
int print_errors(const std::vector<CompileOutcome>& outcomes, Console& console);

}  // namespace kiln::cli
