// SPDX-License-Identifier: Apache-2.0
// The cost of a request at program start: the caller's time in Engine::request, including the start of the engine's
// first thread.
#include <string>
#include <vector>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/child_process.hpp"
#include "bench/support/no_op_engine.hpp"

namespace kiln::bench {
namespace {

constexpr std::size_t kSourceSize = 20'000;     // a kernel with its preamble
constexpr std::size_t kManySourceSize = 2'000;  // ten thousand of the larger ones would be 200 MB

double microseconds_of_request(Engine& engine, const std::vector<CompileRequest>& requests) {
  return microseconds_each(1, [&] { engine.request(requests); });
}

Error not_idle() { return make_error(Code::Internal, "the engine did not become idle"); }

Result<Outcome> first(const char* name, std::size_t count, std::size_t size, double max_us, const char* unit,
                      double units_per_us) {
  return compare({.name = name,
                  .unit = unit,
                  .limit = 1,
                  .ours = [=]() -> Result<double> {
                    const std::vector<CompileRequest> requests = unseen_orders(count, size);
                    Engine engine(instant_resolver(), {});
                    return microseconds_of_request(engine, requests) * units_per_us;
                  },
                  .theirs = allowed(max_us * units_per_us),
                  .budget = Budget::Time});
}

// The first request of a process.
Result<Outcome> first_of_a_process() {
  const auto ours = []() -> Result<double> {
    const auto times = run_child({beside_this_program("kiln-bench-request")});
    if (!times) return times.error();
    return times->from_main_us;
  };
  return compare(
      {.name = "request_18_new_process", .limit = 1, .ours = ours, .theirs = allowed(100), .budget = Budget::Time});
}

// The same request after the first has completed.
Result<Outcome> repeated() {
  const auto ours = []() -> Result<double> {
    const std::vector<CompileRequest> requests = unseen_orders(18, kSourceSize);
    Engine engine(instant_resolver(), {});
    engine.request(requests);
    if (!wait_until_idle(engine)) return not_idle();
    return microseconds_of_request(engine, requests);
  };
  return compare({.name = "request_18_again", .limit = 1, .ours = ours, .theirs = allowed(20), .budget = Budget::Time});
}

// The same request while the first is running.
Result<Outcome> repeated_at_once() {
  const auto ours = []() -> Result<double> {
    const std::vector<CompileRequest> requests = unseen_orders(18, kSourceSize);
    Engine engine(instant_resolver(), {});
    engine.request(requests);
    return microseconds_of_request(engine, requests);
  };
  return compare(
      {.name = "request_18_again_at_once", .limit = 1, .ours = ours, .theirs = allowed(20), .budget = Budget::Time});
}

}  // namespace

Result<Outcomes> request_18() {
  Outcomes outcomes;
  for (auto&& outcome : {first("request_18", 18, kSourceSize, 100, "us", 1), first_of_a_process(), repeated(),
                         repeated_at_once(), first("request_10000", 10'000, kManySourceSize, 10'000, "ms", 1e-3)}) {
    if (Status added = add(outcomes, outcome); !added) return std::move(added).error();
  }
  return outcomes;
}

}  // namespace kiln::bench
