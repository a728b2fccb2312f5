// SPDX-License-Identifier: Apache-2.0
// A program that uses five of a library's 31 kernels and reports the cost: the units compiled, the startup time, the
// warm-up and whether the results are right. It requests its kernels first, so that they are compiled at the same time,
// and waits once for all of them: no call waits for a compiler.
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <thread>

#include "check.hpp"
#include "report.hpp"
#include "semiring.hpp"

namespace {

using semiring::Backend;
using semiring::Report;
using semiring::Semiring;
using Clock = std::chrono::steady_clock;

constexpr char kUsage[] =
    "many_kernels --backend opencl|cuda [--all] [--undeclared] [--record] [--trace FILE] [--json]\n"
    "\n"
    "  --all          use all 31 kernels, not the five that most users need\n"
    "  --undeclared   use one more kernel, without declaring it\n"
    "  --record       make the use of a kernel that was not declared an error\n"
    "  --trace FILE   write a trace for ui.perfetto.dev\n"
    "  --json         print JSON\n"
    "\n"
    "Exit code: 0 success, 1 a result is wrong or a kernel was not declared, 2 an operation failed.\n";

struct Arguments {
  Backend backend = Backend::OpenCl;
  bool all = false;
  bool undeclared = false;
  bool record = false;
  bool json = false;
  std::string trace;
};

bool parse(int count, char** texts, Arguments& arguments) {
  bool has_backend = false;
  for (int at = 1; at < count; ++at) {
    const std::string_view text = texts[at];
    const std::string_view next = at + 1 < count ? texts[at + 1] : "";
    if (text == "--all") {
      arguments.all = true;
    } else if (text == "--undeclared") {
      arguments.undeclared = true;
    } else if (text == "--record") {
      arguments.record = true;
    } else if (text == "--json") {
      arguments.json = true;
    } else if (text == "--trace" && !next.empty()) {
      arguments.trace = texts[++at];
    } else if (text == "--backend" && (next == "opencl" || next == "cuda")) {
      arguments.backend = next == "opencl" ? Backend::OpenCl : Backend::Cuda;
      has_backend = true;
      ++at;
    } else {
      return false;
    }
  }
  return has_backend;
}

kiln::SessionOptions options_for(const Arguments& arguments) {
  kiln::SessionOptions options;
  if (!arguments.trace.empty()) options.settings["trace"] = arguments.trace;
  options.record_undeclared = arguments.record;
  return options;
}

std::vector<std::string> kernels_for(const Arguments& arguments) {
  std::vector<std::string> names = semiring::typical_names();
  if (arguments.all) {
    names.clear();
    for (const semiring::Member& member : semiring::members()) names.push_back(member.name);
  }
  if (arguments.undeclared) names.emplace_back("gemm_min_plus_f32");
  return names;
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Report run(const Arguments& arguments) {
  Report report;
  report.backend = kiln::to_string(arguments.backend);
  report.available = semiring::members().size();

  const auto start = Clock::now();
  kiln::Session session = kiln::Session::open(options_for(arguments)).value();
  const kiln::Requirements& requirements =
      arguments.all ? semiring::everything(arguments.backend) : semiring::typical(arguments.backend);
  session.request(requirements);  // returns at once; a program with other work to do would do it now
  report.startup_ms = ms_since(start);

  const kiln::Stream stream = session.stream(arguments.backend).value();
  const auto warmup = Clock::now();
  // The first use of a kernel that failed reports its error.
  (void)kiln::WarmupPlan("many_kernels").stage(requirements).ensure_warm(session, kiln::kForever);
  report.warmup_ms = ms_since(warmup);
  Semiring library(session, arguments.backend);
  for (const std::string& kernel : kernels_for(arguments)) {
    report.kernels.emplace_back(kernel, check(library, stream, kernel));
    if (report.kernels.size() == 1) report.first_result_ms = ms_since(start);
  }
  report.total_ms = ms_since(start);

  report.status = session.status();
  // `get` can find a unit by itself and return before the background request for the same unit is counted as done.
  for (int look = 0; look < 1000 && report.status.pending != 0; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    report.status = session.status();
  }
  if (!report.status.units.empty()) report.device = report.status.units.front().target;
  report.undeclared = session.undeclared();
  report.threads = static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
  if (!arguments.trace.empty()) session.write_trace().value();
  return report;
}

}  // namespace

int main(int count, char** texts) try {
  // Lets PoCL put the code for the block of all kernels into its binaries. Otherwise it compiles each kernel again at
  // the first launch of each process. Must be set before the program starts threads.
  setenv("POCL_BINARY_SPECIALIZE_WG", "16-16-1-goffs0-smallgrid", 0);
  Arguments arguments;
  if (!parse(count, texts, arguments)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const Report report = run(arguments);
  (arguments.json ? semiring::print_json : semiring::print_table)(report);
  if (!report.executed()) std::fprintf(stderr, "many_kernels: the driver accepted every launch but computed nothing\n");
  for (const kiln::UndeclaredUse& use : report.undeclared) {
    std::fprintf(stderr, "many_kernels: %s uses %s, which is not declared in any Requirements\n", use.caller.c_str(),
                 use.entry.c_str());
  }
  return report.good() ? 0 : 1;
} catch (const kiln::ResultError& error) {
  std::fprintf(stderr, "many_kernels: %s\n", error.what());  // with the compiler's log
  return 2;
}
