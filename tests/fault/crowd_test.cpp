// Many programs at once on a machine with little memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/machine.hpp"
#include "support/control_group.hpp"
#include "support/host_fixture.hpp"
#include "support/processes.hpp"
#include "support/workers.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

class Crowd : public HostFixture {
 protected:
  struct Outcome {
    std::size_t most = 0;  // workers at once
    int samples = 0;
    double seconds = 0;
    std::set<std::string> artifacts;
  };
  // So many processes in the group, each with units of its own; returns when all have ended.
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
      std::size_t now = 0;
      for (const GetProcess& process : processes) {
        for (const pid_t worker : workers_of(process.id())) now += process_line(worker).runs() ? 1 : 0;
      }
      outcome.most = std::max(outcome.most, now);
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
    std::printf("figure: %s: %.1f s, most workers %zu of %u slots (%d samples), peak %.0f MB, limit hit %d times\n",
                what, outcome.seconds, outcome.most, slots, outcome.samples, peak,
                std::atoi(group.get("memory.failcnt").c_str()));
  }
  static void expect_none_killed(const GroupBelow& group) {
    const std::string control = group.get("memory.oom_control");
    EXPECT_NE(control.find("oom_kill 0\n"), std::string::npos) << control;
  }
};

constexpr const char* kNoGroup = "no memory group of version 1 can be made here";

TEST_F(Crowd, EightProcessesInTwoGigabytesHaveNoMoreWorkersThanSlotsAndNoneIsKilledForMemory) {
  const GroupBelow group("memory");
  if (!group.set("memory.limit_in_bytes", "2147483648")) GTEST_SKIP() << kNoGroup;
  const Outcome outcome = run(group, 8, 25);
  // One per core, and as many as have half a gigabyte each beside half a gigabyte for everyone else.
  const unsigned slots = std::min(usable_cores(), 3U);
  print("8 processes x 25 cold units in 2 GB", outcome, slots, group);
  EXPECT_LE(outcome.most, slots);
  EXPECT_GE(outcome.most, 1u);
  expect_none_killed(group);
  EXPECT_EQ(outcome.artifacts, reference(0, 8 * 25));
}

TEST_F(Crowd, WhereMemoryIsForOneWorkerThereIsOneHoweverManyCores) {
  const GroupBelow group("memory");
  if (!group.set("memory.limit_in_bytes", "1073741824")) GTEST_SKIP() << kNoGroup;
  const Outcome outcome = run(group, 4, 5);
  print("4 processes x 5 cold units in 1 GB", outcome, 1, group);
  EXPECT_EQ(outcome.most, 1u);
  expect_none_killed(group);
  EXPECT_EQ(outcome.artifacts, reference(0, 4 * 5));
}

}  // namespace
}  // namespace kiln::test
