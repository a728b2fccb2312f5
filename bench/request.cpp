// What a program's start-up pays for saying what it will need: the caller's time for Engine::request, the start of the
// engine's first thread included.
#include <string>
#include <vector>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/child.hpp"
#include "bench/instant_engine.hpp"

namespace kiln::bench {
namespace {

constexpr std::size_t kSourceSize = 20'000;     // a kernel with its preamble
constexpr std::size_t kManySourceSize = 2'000;  // ten thousand of the others would be 200 MB

double microseconds_of_request(Engine& engine, const std::vector<Order>& orders) {
  return microseconds_each(1, [&] { engine.request(orders); });
}

Error not_idle() { return failure(Code::Internal, "the engine did not come to rest"); }

Result<Outcome> first(const char* name, std::size_t count, std::size_t size, double most_us, const char* unit,
                      double units_per_us) {
  return compare({.name = name,
                  .unit = unit,
                  .limit = 1,
                  .ours = [=]() -> Result<double> {
                    const std::vector<Order> orders = unseen_orders(count, size);
                    Engine engine(instant_parts());
                    return microseconds_of_request(engine, orders) * units_per_us;
                  },
                  .theirs = allowed(most_us * units_per_us),
                  .allowance = Allowance::Time});
}

// In a process that has done nothing yet.
Result<Outcome> first_of_a_process() {
  const auto ours = []() -> Result<double> {
    const auto times = run_child({beside_this_program("kiln-bench-request")});
    if (!times) return times.error();
    return times->from_main_us;
  };
  return compare({.name = "request_18_new_process",
                  .limit = 1,
                  .ours = ours,
                  .theirs = allowed(100),
                  .allowance = Allowance::Time});
}

// By when the first request has been answered.
Result<Outcome> repeated() {
  const auto ours = []() -> Result<double> {
    const std::vector<Order> orders = unseen_orders(18, kSourceSize);
    Engine engine(instant_parts());
    engine.request(orders);
    if (!wait_until_idle(engine)) return not_idle();
    return microseconds_of_request(engine, orders);
  };
  return compare(
      {.name = "request_18_again", .limit = 1, .ours = ours, .theirs = allowed(20), .allowance = Allowance::Time});
}

// While the first is being worked on.
Result<Outcome> repeated_at_once() {
  const auto ours = []() -> Result<double> {
    const std::vector<Order> orders = unseen_orders(18, kSourceSize);
    Engine engine(instant_parts());
    engine.request(orders);
    return microseconds_of_request(engine, orders);
  };
  return compare({.name = "request_18_again_at_once",
                  .limit = 1,
                  .ours = ours,
                  .theirs = allowed(20),
                  .allowance = Allowance::Time});
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
