// SPDX-License-Identifier: Apache-2.0
// Programs that share the worker slots of a host: one that is stopped, and one whose caller waits during a warm-up.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <future>
#include <thread>

#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/forked.hpp"
#include "support/processes/processes.hpp"
#include "worker/worker_pool.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

class SharedSlots : public testing::Test {
 protected:
  WorkerPool::Options options(unsigned maximum) const {
    WorkerPool::Options made;
    made.slots_directory = directory_.path();
    made.max_workers = maximum;
    made.program = KILN_MISBEHAVING_WORKER;
    return made;
  }
  static WorkerPool::WorkerRequest request(bool urgent) { return {"a", {}, {}, Urgency(urgent)}; }
  // Keeps a worker busy for this time, measured in the worker.
  static bool run(WorkerPool::Handle& lease, std::chrono::milliseconds time) {
    const Unit unit = Unit::cuda("busy" + std::to_string(time.count()), "");
    const WorkerJob job{{unit, Target::sm(80), {}, "/"}, {}};
    return lease.worker().request(job, 60s, {}).end == Worker::Exchange::Outcome::Answered;
  }
  static bool compile(WorkerPool& pool, bool urgent, std::chrono::milliseconds time) {
    auto lease = pool.take(request(urgent), {});
    return lease.has_value() && run(*lease, time);
  }
  // Returns a process that has a busy worker on each of `most` slots until it is killed.
  Forked holder_of_all(unsigned maximum) const {
    return Forked([this, maximum](const Forked::Side& side) {
      WorkerPool pool(options(maximum));
      std::vector<std::thread> threads;
      for (unsigned i = 0; i < maximum; ++i) {
        threads.emplace_back([&] {
          auto lease = pool.take(request(false), {});
          side.say("busy");
          if (lease.has_value()) (void)run(*lease, 30s);
        });
      }
      for (std::thread& thread : threads) thread.join();
    });
  }
  // Returns a process with one slot and an idle worker on it.
  Forked idle_process(bool urgent, std::chrono::milliseconds turn) const {
    return Forked([this, urgent, turn](const Forked::Side& side) {
      WorkerPool::Options made = options(1);
      made.max_slot_hold = turn;
      WorkerPool pool(made);
      side.say(compile(pool, urgent, 1ms) ? "idle" : "failed");
      (void)side.receive();
    });
  }
  static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  // Starts a process that waits for one short compile, and returns how long it took; -1 if it got no worker after 20 s.
  double seconds_of_a_compile(bool urgent, unsigned maximum) const {
    Forked caller([&](const Forked::Side& side) {
      WorkerPool pool(options(maximum));
      const auto begun = std::chrono::steady_clock::now();
      const bool ok = compile(pool, urgent, 10ms);
      side.say(ok ? std::to_string(seconds_since(begun)) : "-1");
    });
    const std::string line = caller.line(20s);
    return line.empty() ? -1 : std::stod(line);
  }

  const TemporaryDirectory directory_;
};

TEST_F(SharedSlots, StoppedSlotHolderDoesNotBlockOthers) {
  for (const bool urgent : {false, true}) {
    Forked holder = holder_of_all(2);
    ASSERT_EQ(holder.line(), "busy");
    ASSERT_EQ(holder.line(), "busy");
    std::optional<Forked> urgent_holder;
    if (urgent) {  // one that also holds the slot reserved for waiting callers
      urgent_holder.emplace([this](const Forked::Side& side) {
        WorkerPool pool(options(2));
        auto lease = pool.take(request(true), {});
        side.say("busy");
        if (lease.has_value()) (void)run(*lease, 30s);
      });
      EXPECT_EQ(urgent_holder->line(), "busy");
      kill(urgent_holder->id(), SIGSTOP);
    }
    kill(holder.id(), SIGSTOP);
    const double seconds = seconds_of_a_compile(urgent, 2);
    std::printf("figure: a %s compile next to a stopped holder of all slots took %.2f s\n",
                urgent ? "waited-for" : "background", seconds);
    EXPECT_GE(seconds, 0) << "it was blocked";
    EXPECT_LT(seconds, 15);
  }
}

TEST_F(SharedSlots, SlotHolderWithStoppedWorkerDoesNotBlockOthers) {
  Forked holder = holder_of_all(1);
  ASSERT_EQ(holder.line(), "busy");
  const std::vector<ProcessLine> workers = children_of(holder.id());
  ASSERT_EQ(workers.size(), 1u);
  kill(workers[0].id, SIGSTOP);
  const double seconds = seconds_of_a_compile(false, 1);
  kill(workers[0].id, SIGKILL);  // if stopped before it could ask the kernel to end with its parent, it would stay
  std::printf("figure: a background compile next to a worker that used no CPU time took %.2f s\n", seconds);
  EXPECT_GE(seconds, 0) << "it was blocked";
  EXPECT_GE(seconds, 1.5) << "a worker without CPU time for less than two seconds may be working";
}

TEST_F(SharedSlots, UrgentCompileStartsDuringWarmupOfOtherProcess) {
  Forked warming = holder_of_all(2);
  ASSERT_EQ(warming.line(), "busy");
  ASSERT_EQ(warming.line(), "busy");
  double slowest = 0;
  for (int i = 0; i < 5; ++i) {
    const double seconds = seconds_of_a_compile(true, 2);
    ASSERT_GE(seconds, 0) << "it was blocked";
    slowest = std::max(slowest, seconds);
  }
  std::printf("figure: an urgent 10 ms compile during another process's warm-up took at most %.3f s (5 times)\n",
              slowest);
  EXPECT_LT(slowest, 10);
  EXPECT_EQ(children_of(warming.id()).size(), 2u) << "a running compile was killed";
}

TEST_F(SharedSlots, UrgentCompileStartsDuringWarmupOfSameProcess) {
  WorkerPool pool(options(1));
  auto lease = pool.take(request(false), {});
  ASSERT_TRUE(lease.has_value());
  auto urgent = std::async(std::launch::async, [&] { return compile(pool, true, 1ms); });
  EXPECT_EQ(urgent.wait_for(10s), std::future_status::ready) << "it was blocked";
  if (urgent.wait_for(0s) != std::future_status::ready) pool.interrupt();
}

TEST_F(SharedSlots, WaiterThatBecomesUrgentStartsDuringWarmup) {
  Forked warming = holder_of_all(1);
  ASSERT_EQ(warming.line(), "busy");
  WorkerPool pool(options(1));
  Urgency urgency(false);
  auto waiting = std::async(std::launch::async, [&] { return pool.take({"a", {}, {}, urgency}, {}).has_value(); });
  EXPECT_EQ(waiting.wait_for(300ms), std::future_status::timeout) << "background work took the reserved slot";
  urgency.raise();
  EXPECT_EQ(waiting.wait_for(10s), std::future_status::ready) << "it was blocked";
  pool.interrupt();
}

TEST_F(SharedSlots, WaiterIsUrgentIfOtherProcessAwaitsItsResult) {
  Forked warming = holder_of_all(1);
  ASSERT_EQ(warming.line(), "busy");
  WorkerPool::WorkerRequest background = request(false);
  background.request.bytes[0] = 42;
  const Forked awaiting([&](const Forked::Side& side) {
    (void)side.receive();
    const WorkerSlots::SlotRequest awaited = WorkerSlots(directory_.path()).await(background.request);
    (void)side.receive();
  });
  WorkerPool pool(options(1));
  auto waiting = std::async(std::launch::async, [&] { return pool.take(background, {}).has_value(); });
  EXPECT_EQ(waiting.wait_for(300ms), std::future_status::timeout) << "background work took the reserved slot";
  awaiting.say("now");
  EXPECT_EQ(waiting.wait_for(10s), std::future_status::ready) << "it was blocked";
  pool.interrupt();
}

TEST_F(SharedSlots, IdleWorkerYieldsSlotToBackgroundWork) {
  const Forked idle = idle_process(false, 100ms);
  ASSERT_EQ(idle.line(), "idle");
  const double seconds = seconds_of_a_compile(false, 1);
  EXPECT_GE(seconds, 0) << "it was blocked";
  EXPECT_LT(seconds, 15) << "it waited for the idle timeout of the worker";
  EXPECT_TRUE(eventually([&] { return children_of(idle.id()).empty(); }));
}

TEST_F(SharedSlots, BackgroundWorkYieldsSlotToUrgentWork) {
  // The reserved slot is held, so that only the slot of the warm-up can become free.
  const WorkerSlots slots(directory_.path());
  const Forked warming([&](const Forked::Side& side) {
    WorkerPool::Options made = options(1);
    made.max_slot_hold = 10min;
    WorkerPool pool(made);
    side.say("warms");
    for (int i = 0; i < 600; ++i) (void)compile(pool, false, 100ms);
    side.say("done");
  });
  const auto reserved = slots.take_reserved();
  ASSERT_TRUE(reserved);
  ASSERT_EQ(warming.line(), "warms");
  ASSERT_TRUE(eventually([&] { return !children_of(warming.id()).empty(); }));
  const double seconds = seconds_of_a_compile(true, 1);
  std::printf("figure: an urgent compile got the slot of a warm-up of 100 ms compiles after %.2f s\n", seconds);
  EXPECT_GE(seconds, 0) << "it was blocked";
  EXPECT_LT(seconds, 15) << "it waited for the end of the warm-up";
  EXPECT_TRUE(eventually([&] { return !children_of(warming.id()).empty(); })) << "the warm-up does not continue";
}

TEST_F(SharedSlots, IdleWorkerYieldsReservedSlot) {
  Forked warming = holder_of_all(1);
  ASSERT_EQ(warming.line(), "busy");
  const Forked idle = idle_process(true, 10min);
  ASSERT_EQ(idle.line(), "idle");
  const double seconds = seconds_of_a_compile(true, 1);
  std::printf("figure: an idle worker on the reserved slot was released after %.2f s\n", seconds);
  EXPECT_GE(seconds, 0) << "it was blocked";
  EXPECT_LT(seconds, 15);
}

TEST_F(SharedSlots, SixtyFourProcessesExceedSlotsByAtMostTwoWorkers) {
  constexpr unsigned kSlots = 2;
  Forked holder = holder_of_all(kSlots);
  for (unsigned i = 0; i < kSlots; ++i) ASSERT_EQ(holder.line(), "busy");
  kill(holder.id(), SIGSTOP);
  const auto begun = std::chrono::steady_clock::now();
  std::vector<Forked> callers;
  for (int i = 0; i < 63; ++i) {
    callers.emplace_back([&, first = i % 2 == 0](const Forked::Side& side) {
      bool ok = true;
      {
        WorkerPool pool(options(kSlots));
        for (const bool urgent : {first, !first}) ok = compile(pool, urgent, 20ms) && ok;
      }
      side.say(ok ? "done" : "failed");
    });
  }
  std::vector<pid_t> parents{holder.id()};
  for (const Forked& caller : callers) parents.push_back(caller.id());
  std::size_t done = 0;
  auto all = std::async(std::launch::async, [&] {
    for (const Forked& caller : callers) {
      if (caller.line() != "done") return;
      ++done;
    }
  });
  std::size_t maximum = 0;
  int samples = 0;
  while (all.wait_for(5ms) != std::future_status::ready) {
    std::size_t now = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t id = std::atoi(entry.path().filename().c_str());
      const ProcessLine line = id > 0 ? process_line(id) : ProcessLine();
      now += line.runs() && std::find(parents.begin(), parents.end(), line.parent) != parents.end() ? 1 : 0;
    }
    maximum = std::max(maximum, now);
    ++samples;
  }
  std::printf("figure: 64 processes, one of them stopped with both slots: at most %zu workers (%d samples), %.1f s\n",
              maximum, samples, seconds_since(begun));
  EXPECT_EQ(done, callers.size());
  EXPECT_LE(maximum, kSlots + 2);
  EXPECT_GE(samples, 10);
}

}  // namespace
}  // namespace kiln::test
