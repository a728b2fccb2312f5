// SPDX-License-Identifier: Apache-2.0
// Many programs at once on a machine with little memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/process/system_info.hpp"
#include "support/fixtures/host_fixture.hpp"
#include "support/fixtures/workers.hpp"
#include "support/processes/control_group.hpp"
#include "support/processes/processes.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

class MemoryPressure : public HostFixture {
 protected:
  struct Outcome {
    std::size_t maximum = 0;  // maximum number of simultaneous workers
    int samples = 0;
    double seconds = 0;
    std::set<std::string> artifacts;
  };
  // Runs `count` processes in the group, each with its own units. Returns when all have ended.
  Outcome run(const GroupBelow& group, int count, int units) {
    const auto begun = std::chrono::steady_clock::now();
    std::vector<GetProcess> processes;
    for (int i = 0; i < count; ++i) {
      const std::vector<std::string> arguments{"plain", std::to_string(i * units), std::to_string(units)};
      processes.push_back(start({arguments, {}, {}, [&] { return group.enter(); }}));
    }
    const auto works = [](const GetProcess& process) { return process.count("children ") == 0; };
    Outcome outcome;
    while (std::any_of(processes.begin(), processes.end(), works) && seconds_since(begun) < 240) {
      std::vector<pid_t> workers;
      for (const GetProcess& process : processes) {
        for (const pid_t worker : workers_of(process.id())) workers.push_back(worker);
      }
      // Workers that still run after all were listed were running simultaneously; others may have followed each other.
      const auto now = std::count_if(workers.begin(), workers.end(), [](pid_t id) { return process_line(id).runs(); });
      outcome.maximum = std::max(outcome.maximum, static_cast<std::size_t>(now));
      ++outcome.samples;
      std::this_thread::sleep_for(20ms);
    }
    outcome.seconds = seconds_since(begun);
    for (GetProcess& process : processes) {
      EXPECT_EQ(process.exit_code(), 0) << process.output();
      EXPECT_EQ(process.count("event worker_lost"), 0) << process.output();
      outcome.artifacts.merge(artifacts(process));
    }
    return outcome;
  }
  static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  static void print(const char* what, const Outcome& outcome, unsigned slots, const GroupBelow& group) {
    const double peak = std::stod("0" + group.get("memory.max_usage_in_bytes")) / (1 << 20);
    std::printf("figure: %s: %.1f s, at most %zu workers for %u slots (%d samples), peak %.0f MB, limit hit %d times\n",
                what, outcome.seconds, outcome.maximum, slots, outcome.samples, peak,
                std::atoi(group.get("memory.failcnt").c_str()));
  }
  static void expect_none_killed(const GroupBelow& group) {
    const std::string control = group.get("memory.oom_control");
    EXPECT_NE(control.find("oom_kill 0\n"), std::string::npos) << control;
  }
};

constexpr const char* kNoGroup = "cannot create a cgroup v1 memory group here";

TEST_F(MemoryPressure, EightProcessesStayWithinSlotsAndTwoGigabytes) {
  const GroupBelow group("memory");
  if (!group.set("memory.limit_in_bytes", "2147483648")) GTEST_SKIP() << kNoGroup;
  const Outcome outcome = run(group, 8, 25);
  // One per core, limited to what fits with half a gigabyte per worker in addition to half a gigabyte for everything
  // else; plus one reserved for waiting callers, if memory allows.
  const unsigned slots = std::min(usable_cores(), 3U) + 1;
  print("8 processes x 25 cold units in 2 GB", outcome, slots, group);
  EXPECT_LE(outcome.maximum, slots);
  EXPECT_GE(outcome.maximum, 1u);
  expect_none_killed(group);
  EXPECT_EQ(outcome.artifacts, reference(0, 8 * 25));
}

TEST_F(MemoryPressure, MemoryForOneWorkerLimitsWorkersToOne) {
  const GroupBelow group("memory");
  if (!group.set("memory.limit_in_bytes", "1073741824")) GTEST_SKIP() << kNoGroup;
  const Outcome outcome = run(group, 4, 5);
  print("4 processes x 5 cold units in 1 GB", outcome, 1, group);
  EXPECT_EQ(outcome.maximum, 1u);
  expect_none_killed(group);
  EXPECT_EQ(outcome.artifacts, reference(0, 4 * 5));
}

}  // namespace
}  // namespace kiln::test
