// SPDX-License-Identifier: Apache-2.0
// The cost of calls with a very long queue.
#include "core/unit_access.hpp"
#include "support/fixtures/engine_fixture.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace kiln::test {
namespace {

// Requests of unhashed units with equal names, as a generator creates them.
std::vector<CompileRequest> generated_orders(std::size_t count) {
  std::vector<CompileRequest> requests;
  requests.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::string source = "// kernel " + std::to_string(i) + '\n';
    source.resize(2000, ' ');
    requests.push_back({Unit::of_kind("fake", "generated", std::move(source)), Target::sm(80)});
  }
  return requests;
}

// Returns the CPU time of this thread, which other load does not change.
double cpu_milliseconds_of(const std::function<void()>& work) {
  timespec start{};
  timespec end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  work();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return static_cast<double>(end.tv_sec - start.tv_sec) * 1e3 + static_cast<double>(end.tv_nsec - start.tv_nsec) / 1e6;
}

double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(EngineTest, CancelCostDoesNotDependOnQueueLength) {
  constexpr std::size_t kQueued = 90'000;
  constexpr std::size_t kCancelled = 300;
  work_.when("first", {.held = true});
  ScriptedEngine engine(work_.params(), {.max_threads = 1});  // no observer: its events would cost more than the calls
  request(engine, {"first"});
  ASSERT_TRUE(work_.begun("first"));
  const std::vector<CompileRequest> requests = generated_orders(kQueued);
  engine.request(requests);
  // Other objects with equal content, which the engine must find among all units.
  const std::vector<CompileRequest> equal = generated_orders(kCancelled);
  const double took = cpu_milliseconds_of([&] {
    for (const CompileRequest& request : equal) engine.cancel({&request, 1});
  });
  std::printf("figure: %zu single cancels with %zu queued units take %.1f ms\n", kCancelled, kQueued, took);
  std::size_t hashed = 0;
  for (const CompileRequest& request : requests)
    hashed += UnitAccess::identity_if_computed(request.unit) != nullptr ? 1 : 0;
  EXPECT_LE(hashed, kCancelled + 1) << "of the queue, only the canceled units and the next to run";
  std::printf("figure: a status snapshot of %zu units takes %.1f ms\n", kQueued,
              milliseconds_of([&] { engine.status_snapshot(64); }));
  const SessionStatus status = engine.status();
  EXPECT_EQ(status.cancelled, kCancelled);
  EXPECT_EQ(status.pending, kQueued + 1 - kCancelled);
  EXPECT_LT(took, 1000);
  std::printf("figure: stop with %zu queued units takes %.1f ms\n", kQueued, milliseconds_of([&] { engine.stop(); }));
}

}  // namespace
}  // namespace kiln::test
