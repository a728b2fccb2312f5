// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.hpp"
#include "support/fakes/scripted_work.hpp"
#include "support/processes/sanitizer.hpp"
#include "support/processes/scheduling_delay.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr int kThreads = 32;
constexpr int kGets = 1000;
constexpr int kRecipes = 50;

bool to_fail(int recipe) { return recipe % 10 == 3; }

// Many threads that get few units, each with a short timeout, while some units are canceled, retried or forgotten.
class Crowd {
 public:
  /// If `again` is set, failures are retried and results forgotten, so that some units are never ready for long.
  explicit Crowd(bool again) : again_(again), engine_(work_.params(), {.max_threads = 4}) {
    for (int i = 0; i < kRecipes; ++i) {
      Script script;
      script.takes = std::chrono::milliseconds(i % 7 == 0 ? 20 : i % 4);
      if (to_fail(i)) script.error = ScriptedWork::rejection();
      work_.when(name_of(i), script);
      requests_.push_back(ScriptedWork::request(name_of(i)));
    }
  }

  void run() {
    std::vector<std::vector<nanoseconds>> late(kThreads);
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < kThreads; ++number) {
      threads.emplace_back([this, number, &late] { late[number] = member(number); });
    }
    const SchedulingDelayMonitor delay_monitor;
    for (std::thread& thread : threads) thread.join();
    delay_monitor_late_ = delay_monitor.late();
    for (const auto& of_thread : late) late_.insert(late_.end(), of_thread.begin(), of_thread.end());
    std::sort(late_.begin(), late_.end());
  }

  /// Returns the delay that this fraction of the results did not exceed.
  nanoseconds lateness(double part) const {
    return late_.at(std::min(late_.size() - 1, static_cast<std::size_t>(part * static_cast<double>(late_.size()))));
  }
  /// Returns the maximum delay of the machine itself, measured by a thread that only sleeps.
  nanoseconds delay_monitor_lateness() const { return delay_monitor_late_; }
  std::size_t answers() const { return late_.size(); }
  int wrong() const { return wrong_; }
  /// Returns the number of compiles beyond the first of each unit and one for each time it was requested again.
  int needless() {
    int count = 0;
    for (int i = 0; i < kRecipes; ++i) {
      count += std::max(0, work_.compiles(requests_[static_cast<std::size_t>(i)]) - 1 - repeats_[i]);
    }
    return count;
  }
  int compiles() const { return static_cast<int>(work_.begun_in_order().size()); }

 private:
  static std::string name_of(int recipe) { return "recipe " + std::to_string(recipe); }

  std::vector<nanoseconds> member(unsigned number) {
    static constexpr std::array kLimits = {
        0ns, nanoseconds(200us), nanoseconds(1ms), nanoseconds(2ms), nanoseconds(20ms), kForever};
    std::mt19937 random(number);
    std::vector<nanoseconds> late;
    late.reserve(kGets);
    for (int i = 0; i < kGets; ++i) {
      const int recipe = static_cast<int>(random() % kRecipes);
      // Half of them are equal units that were created elsewhere, as by two libraries of one program.
      const CompileRequest& known = requests_[static_cast<std::size_t>(recipe)];
      const CompileRequest request = random() % 2 == 0 ? known : ScriptedWork::request(name_of(recipe));
      disturb(random() % 200, recipe, request);
      // The threads sleep between gets. Otherwise this would measure how long 32 busy threads on two cores wait for a
      // time slice.
      system_clock().sleep(std::chrono::microseconds(random() % 1000));
      const nanoseconds timeout = kLimits[random() % kLimits.size()];
      const nanoseconds start = system_clock().steady();
      const auto got = engine_.get(request, timeout);
      const nanoseconds took = system_clock().steady() - start;
      if (!makes_sense(got, recipe, took, timeout)) ++wrong_;
      late.push_back(std::max(0ns, timeout == kForever ? 0ns : took - timeout));
    }
    return late;
  }

  void disturb(unsigned chance, int recipe, const CompileRequest& request) {
    const std::span<const CompileRequest> one(&request, 1);
    if (chance < 4) engine_.cancel(one);
    if (chance < 8) engine_.request(one);
    if (!again_ || chance < 8 || chance > 20) return;
    ++repeats_[recipe];
    if (to_fail(recipe)) {
      engine_.retry(one);
    } else {
      engine_.forget(request);
    }
  }

  static bool makes_sense(const Result<ResolveResultPtr>& got, int recipe, nanoseconds took, nanoseconds timeout) {
    if (got) return !to_fail(recipe) && (*got)->artifact.bytes.view() == "compiled source of " + name_of(recipe);
    switch (got.error().code) {
      case Code::TimedOut: return took >= timeout;
      case Code::CompileFailed: return to_fail(recipe) && got.error().log == "line 1: no";
      case Code::Cancelled: return true;
      default: return false;
    }
  }

  const bool again_;
  ScriptedWork work_;
  std::vector<CompileRequest> requests_;
  std::array<std::atomic<int>, kRecipes> repeats_{};
  std::atomic<int> wrong_{0};
  std::vector<nanoseconds> late_;
  nanoseconds delay_monitor_late_{0};
  ScriptedEngine engine_;
};

double milliseconds(nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

class EngineCrowd : public testing::TestWithParam<bool> {};

TEST_P(EngineCrowd, EachKeyIsCompiledOnceAndWaitersFinishInTime) {
  Crowd crowd(GetParam());
  crowd.run();
  EXPECT_EQ(crowd.answers(), static_cast<std::size_t>(kThreads) * kGets);
  EXPECT_EQ(crowd.wrong(), 0);
  EXPECT_EQ(crowd.needless(), 0);
  EXPECT_TRUE(GetParam() || crowd.compiles() <= kRecipes) << crowd.compiles();
  std::printf(
      "figure: engine, %d threads x %d gets on %d recipes, %s: compiles=%d late by: 99%%=%.2f 99.9%%=%.2f "
      "most=%.2f ms; a sleeping thread by %.2f ms\n",
      kThreads, kGets, kRecipes, GetParam() ? "repeatedly" : "once", crowd.compiles(),
      milliseconds(crowd.lateness(0.99)), milliseconds(crowd.lateness(0.999)), milliseconds(crowd.lateness(1)),
      milliseconds(crowd.delay_monitor_lateness()));
  // The promised delay is 5 ms. The machine is shared, so some may be as late as a sleeping thread, and a few later.
  EXPECT_LE(crowd.lateness(0.99), (kThreadSanitizer ? 500ms : 5ms) + crowd.delay_monitor_lateness());
  EXPECT_LE(crowd.lateness(1), 2s + crowd.delay_monitor_lateness());
}

INSTANTIATE_TEST_SUITE_P(, EngineCrowd, testing::Values(false, true),
                         [](const testing::TestParamInfo<bool>& one) { return one.param ? "AgainAndAgain" : "Once"; });

// Only checks that it ends. The sanitizers detect leaks and races.
TEST(EngineStress, EngineCanBeDestroyedAtAnyTime) {
  std::mt19937 random(1);
  for (int round = 0; round < (kThreadSanitizer ? 1'000 : 10'000); ++round) {
    ScriptedWork work;
    work.otherwise({.takes = std::chrono::microseconds(random() % 100)});
    ScriptedEngine engine(work.params(), {.max_threads = 2});
    engine.request(ScriptedWork::requests({"a", "b", "c"}));
    if (random() % 8 == 0) (void)engine.get(ScriptedWork::request("c"), std::chrono::microseconds(random() % 100));
    const nanoseconds end = system_clock().steady() + std::chrono::microseconds(random() % 100);
    while (system_clock().steady() < end) std::this_thread::yield();
  }
}

TEST(EngineStress, EngineCanBeStoppedWhileManyThreadsWait) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    ScriptedWork work;
    work.otherwise({.takes = 1ms});
    ScriptedEngine engine(work.params(), {.max_threads = 1});
    std::vector<std::thread> threads;
    std::atomic<int> answers{0};
    for (int number = 0; number < 6; ++number) {
      threads.emplace_back([&engine, &answers, number] {
        const auto got = engine.get(ScriptedWork::request(std::to_string(number % 4)), kForever);
        if (got || got.error().code == Code::Cancelled) ++answers;
      });
    }
    system_clock().sleep(std::chrono::microseconds(random() % 3000));
    engine.stop();
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(answers, 6);
  }
}

}  // namespace
}  // namespace kiln::test
