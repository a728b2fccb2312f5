// SPDX-License-Identifier: Apache-2.0
// The cost of a compile in a running worker: the round trip, the input tracking and the dependency set. Nothing is
// stored, and no header is precompiled. Bare NVRTC runs in its own process that has compiled the unit before, and in
// one thread, as a worker does: malloc is slower in a process with several threads.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/child_process.hpp"
#include "bench/support/cub_units.hpp"
#include "bench/support/one_worker.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/units.hpp"

namespace kiln::bench {
namespace {

// The promise: this multiple of NVRTC's own time, plus a constant for the round trip.
constexpr double kShare = 1.03;
constexpr double kMilliseconds = 3;

class BareProcess {
 public:
  static Result<BareProcess> start(const std::string& nvrtc, const std::vector<std::string>& roots) {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0) return io_error("cannot create", "a pipe", errno);
    Fd their_in(in[0]);
    Fd questions(in[1]);
    if (pipe2(out, O_CLOEXEC) != 0) return io_error("cannot create", "a pipe", errno);
    Fd answers(out[0]);
    Fd their_out(out[1]);
    Process::SpawnOptions start{{beside_this_program("kiln-bench-eight"), "plain", "0", "repeat", nvrtc},
                                current_environment(),
                                {{their_in.get(), 0}, {their_out.get(), 1}}};
    start.arguments.insert(start.arguments.end(), roots.begin(), roots.end());
    auto process = Process::spawn(start);
    if (!process) return std::move(process).error();
    return BareProcess(std::move(*process), std::move(questions), std::move(answers));
  }

  Result<double> compile() {
    const std::int64_t start = now_ns();
    char answer[64];
    if (write(questions_.get(), "\n", 1) != 1 || read(answers_.get(), answer, sizeof answer) <= 0) {
      return make_error(Code::Internal, "kiln-bench-eight does not respond");
    }
    return static_cast<double>(now_ns() - start) / 1e6;
  }

 private:
  BareProcess(Process process, Fd questions, Fd answers)
      : process_(std::move(process)), questions_(std::move(questions)), answers_(std::move(answers)) {}
  Process process_;
  Fd questions_;
  Fd answers_;
};

}  // namespace

Result<Outcomes> worker_overhead() {
  const auto roots = toolkit_include_roots();
  if (!roots) return roots.error();
  const Scratch scratch;
  use_own_directories(scratch);
  OneWorker worker(scratch.path());
  auto identity = worker.compiler.identity({});
  if (!identity) return std::move(identity).error();
  const Recipe recipe{cub_units(*roots).front(), Target{kArchitecture, Form::Cubin}, *identity, scratch.path()};
  auto bare = BareProcess::start(identity->path, *roots);
  if (!bare) return std::move(bare).error();

  const std::vector<Plan::Side> sides{[&]() -> Result<double> {
                                        const std::int64_t start = now_ns();
                                        const auto compiled = worker.compiler.compile(recipe, {});
                                        const double time = static_cast<double>(now_ns() - start) / 1e6;
                                        if (!compiled) return compiled.error();
                                        if (worker.pool.workers().size() != 1) {
                                          return make_error(Code::Internal, "the unit was not compiled in a worker");
                                        }
                                        return time;
                                      },
                                      [&] { return bare->compile(); }};
  // The first compile of each process is not measured.
  for (const Plan::Side& side : sides) {
    if (auto once = side(); !once) return std::move(once).error();
  }
  constexpr std::size_t kRounds = 15;
  const auto times = take_turns(sides, kRounds);
  if (!times) return times.error();
  Plan plan;
  plan.name = "worker_overhead";
  plan.unit = "ms";
  plan.limit = kShare + kMilliseconds / median((*times)[1]);
  return Outcomes{outcome_of(plan, (*times)[0], (*times)[1])};
}

}  // namespace kiln::bench
