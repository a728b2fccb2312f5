// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_slots.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {
namespace {

using Slots = std::vector<WorkerSlots::Slot>;

// Takes as many of the first `maximum` slots as are available.
Slots take_all(const WorkerSlots& slots, unsigned maximum) {
  Slots taken;
  while (taken.size() < maximum) {
    auto slot = slots.take(maximum);
    if (!slot) break;
    taken.push_back(std::move(*slot));
  }
  return taken;
}

// Returns how many of the first `maximum` slots a new process gets.
std::string free_elsewhere(const std::string& directory, unsigned maximum) {
  const Forked child(
      [&](const Forked::Side& side) { side.say(std::to_string(take_all(WorkerSlots(directory), maximum).size())); });
  return child.line();
}

std::string wanted_elsewhere(const std::string& directory) {
  const Forked child([&](const Forked::Side& side) {
    side.say(WorkerSlots(directory).has_other_waiters() ? "wanted" : "not wanted");
  });
  return child.line();
}

TEST(WorkerSlots, CreateOneEmptyFileOnFirstUse) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path("a/b"));
  EXPECT_FALSE(std::filesystem::exists(directory.path("a")));
  const Slots taken = take_all(slots, 3);
  EXPECT_EQ(taken.size(), 3u);
  EXPECT_EQ(files_below(directory.path()), std::vector<std::string>{directory.path("a/b/slots")});
  EXPECT_EQ(std::filesystem::file_size(directory.path("a/b/slots")), 0u);
}

TEST(WorkerSlots, AreLimitedAndReusableAfterRelease) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  EXPECT_FALSE(slots.take(0));
  Slots taken = take_all(slots, 3);
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_FALSE(slots.take(3));
  EXPECT_FALSE(WorkerSlots(directory.path()).take(3)) << "another object on the same directory shares the slots";
  EXPECT_TRUE(slots.take(4)) << "a process with a higher limit gets one more";
  taken.erase(taken.begin());
  EXPECT_TRUE(slots.take(3));
  EXPECT_EQ(take_all(slots, 3).size(), 1u);
}

TEST(WorkerSlots, AreMovableAndReleasedOnce) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  auto first = slots.take(2);
  auto second = slots.take(2);
  ASSERT_TRUE(first && second);
  *first = std::move(*second);  // the first slot is released, the second one is kept
  EXPECT_EQ(take_all(slots, 2).size(), 1u);
  second.reset();
  EXPECT_EQ(take_all(slots, 2).size(), 1u);
  first.reset();
  EXPECT_EQ(take_all(slots, 2).size(), 2u);
}

TEST(WorkerSlots, OutliveTheirOwnerAndAreReleasedOnAnotherThread) {
  const TemporaryDirectory directory;
  auto slot = WorkerSlots(directory.path()).take(1);
  ASSERT_TRUE(slot);
  EXPECT_EQ(free_elsewhere(directory.path(), 1), "0");
  std::thread([&] { slot.reset(); }).join();
  EXPECT_EQ(free_elsewhere(directory.path(), 1), "1");
}

TEST(WorkerSlots, AreExclusiveAmongThreads) {
  constexpr int kMaximum = 3;
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  std::atomic<int> inside{0};
  std::atomic<int> too_many{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 100;) {
        const auto slot = slots.take(kMaximum);
        if (!slot) {
          std::this_thread::yield();
          continue;
        }
        if (++inside > kMaximum) ++too_many;
        std::this_thread::yield();
        --inside;
        ++turn;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(too_many, 0);
}

// Counters that the processes of a test share.
struct Counters {
  std::atomic<int> inside{0};
  std::atomic<int> max_seen{0};
  std::atomic<int> too_many{0};
};

class SharedCounters {
 public:
  SharedCounters() {
    void* const place = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) abort();
    counters_ = new (place) Counters;
  }
  ~SharedCounters() { munmap(counters_, sizeof(Counters)); }
  SharedCounters(const SharedCounters&) = delete;
  Counters* operator->() const { return counters_; }

 private:
  Counters* counters_;
};

TEST(WorkerSlots, LimitHoldsAcrossEightProcesses) {
  constexpr int kMaximum = 3;
  const TemporaryDirectory directory;
  const SharedCounters shared;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::vector<Forked> processes;
  for (int p = 0; p < 8; ++p) {
    processes.emplace_back([&](const Forked::Side&) {
      const WorkerSlots slots(directory.path());
      for (int turn = 0; turn < 300;) {
        const auto slot = slots.take(kMaximum);
        if (!slot) {
          sched_yield();
          continue;
        }
        const int now = ++shared->inside;
        if (now > kMaximum) ++shared->too_many;
        for (int seen = shared->max_seen; seen < now && !shared->max_seen.compare_exchange_weak(seen, now);) continue;
        // The first holders wait for each other; otherwise a fast process can end before the next one starts.
        do {
          sched_yield();
        } while (shared->max_seen < kMaximum && std::chrono::steady_clock::now() < deadline);
        --shared->inside;
        ++turn;
      }
    });
  }
  for (Forked& process : processes) EXPECT_EQ(process.exit_code(), 0);
  EXPECT_EQ(shared->too_many, 0);
  EXPECT_EQ(shared->max_seen, kMaximum) << "fewer processes than allowed held a slot at once";
}

TEST(WorkerSlots, AreReleasedWhenHolderIsKilled) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  Forked holder([&](const Forked::Side& side) {
    const Slots taken = take_all(slots, 4);
    side.say(std::to_string(taken.size()));
    (void)side.receive();
  });
  ASSERT_EQ(holder.line(), "4");
  EXPECT_FALSE(slots.take(4));
  holder.kill_now();
  EXPECT_EQ(take_all(slots, 4).size(), 4u);
}

TEST(WorkerSlots, AreNotHeldByChildOfKilledHolder) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  Forked holder([&](const Forked::Side& side) {
    const Slots taken = take_all(slots, 2);
    const WorkerSlots::SlotRequest request = slots.announce_request();
    const pid_t sleeper = fork();
    if (sleeper == 0) {
      for (;;) pause();
    }
    side.say(std::to_string(sleeper));
    (void)side.receive();
  });
  const pid_t sleeper = static_cast<pid_t>(std::atoi(holder.line().c_str()));
  ASSERT_GT(sleeper, 0);
  EXPECT_FALSE(slots.take(2));
  EXPECT_TRUE(slots.has_other_waiters());
  holder.kill_now();
  EXPECT_EQ(take_all(slots, 2).size(), 2u);
  EXPECT_FALSE(slots.has_other_waiters());
  EXPECT_EQ(kill(sleeper, 0), 0) << "the child must outlive its parent";
  kill(sleeper, SIGKILL);
}

TEST(WorkerSlots, ForkedChildDoesNotReleaseSlotsOfParent) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  Slots taken = take_all(slots, 1);
  std::optional<WorkerSlots::SlotRequest> request = slots.announce_request();
  ASSERT_EQ(taken.size(), 1u);
  const Forked child([&](const Forked::Side& side) {
    taken.clear();
    request.reset();
    side.say(slots.take(1) ? "taken" : "held");
    side.say(slots.has_other_waiters() ? "wanted" : "not wanted");
    const auto own = slots.take(2);
    side.say(own ? "taken" : "held");
    (void)side.receive();
  });
  EXPECT_EQ(child.line(), "held");
  EXPECT_EQ(child.line(), "wanted");
  EXPECT_EQ(child.line(), "taken");
  EXPECT_EQ(free_elsewhere(directory.path(), 2), "0");
  EXPECT_EQ(wanted_elsewhere(directory.path()), "wanted");
}

TEST(WorkerSlots, SlotOfChildSurvivesItsCopyOfParentSlot) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  Slots taken = take_all(slots, 1);
  const Forked child([&](const Forked::Side& side) {
    (void)side.receive();
    const auto own = slots.take(1);
    taken.clear();
    side.say(own ? "taken" : "held");
    (void)side.receive();
  });
  taken.clear();
  child.say("take it");
  ASSERT_EQ(child.line(), "taken");
  EXPECT_FALSE(slots.take(1));
}

TEST(WorkerSlots, WorkAfterForkDuringConcurrentUse) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      const auto slot = slots.take(1);
      const auto request = slots.announce_request();
    }
  });
  for (int i = 0; i < 50; ++i) {
    Forked child([&](const Forked::Side& side) {
      side.say(take_all(slots, 2).empty() ? "none" : "some");
      const auto request = slots.announce_request();
      (void)slots.has_other_waiters();
    });
    ASSERT_EQ(child.line(), "some") << i;
    ASSERT_EQ(child.exit_code(), 0);
  }
  stop = true;
  busy.join();
}

TEST(WorkerSlots, RequestIsVisibleOnlyToOtherProcesses) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  EXPECT_EQ(wanted_elsewhere(directory.path()), "not wanted");
  const Slots taken = take_all(slots, 2);
  EXPECT_EQ(wanted_elsewhere(directory.path()), "not wanted") << "a held slot is not a request";
  std::optional<WorkerSlots::SlotRequest> first = slots.announce_request();
  EXPECT_FALSE(slots.has_other_waiters());
  EXPECT_EQ(wanted_elsewhere(directory.path()), "wanted");
  std::optional<WorkerSlots::SlotRequest> second = WorkerSlots(directory.path()).announce_request();
  first.reset();
  EXPECT_EQ(wanted_elsewhere(directory.path()), "wanted") << "the second request is still announced";
  second.reset();
  EXPECT_EQ(wanted_elsewhere(directory.path()), "not wanted");
}

TEST(WorkerSlots, RequestEndsWithItsProcess) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path());
  const auto requester = [&](const Forked::Side& side) {
    new WorkerSlots::SlotRequest(slots.announce_request());  // never released
    side.say("requested");
    (void)side.receive();
  };
  Forked ends(requester);
  Forked killed(requester);
  ASSERT_EQ(ends.line(), "requested");
  ASSERT_EQ(killed.line(), "requested");
  EXPECT_TRUE(slots.has_other_waiters());
  ends.say("end");
  EXPECT_EQ(ends.exit_code(), 0);
  EXPECT_TRUE(slots.has_other_waiters());
  killed.kill_now();
  EXPECT_FALSE(slots.has_other_waiters());
}

TEST(WorkerSlots, AreUnlimitedInUnusableDirectory) {
  const TemporaryDirectory directory;
  write_text(directory.path("file"), "x");
  std::filesystem::create_directory(directory.path("odd"));
  ASSERT_EQ(mkfifo(directory.path("odd/slots").c_str(), 0600), 0);
  for (const std::string& path : {directory.path("file"), directory.path("file/below"), directory.path("odd")}) {
    const WorkerSlots slots(path);
    const auto first = slots.take(1);
    EXPECT_TRUE(first) << path;
    EXPECT_TRUE(slots.take(1)) << path;
    EXPECT_FALSE(slots.take(0)) << path;
    const WorkerSlots::SlotRequest request = slots.announce_request();
    EXPECT_FALSE(slots.has_other_waiters()) << path;
  }
}

TEST(WorkerSlots, UseNewFileAfterDirectoryIsCleaned) {
  const TemporaryDirectory directory;
  const WorkerSlots slots(directory.path("swept"));
  const auto old = slots.take(1);
  std::filesystem::remove_all(directory.path("swept"));
  const auto fresh = slots.take(1);
  EXPECT_TRUE(fresh);
  EXPECT_EQ(free_elsewhere(directory.path("swept"), 1), "0");
}

TEST(WorkersWithin, IsOnePerCoreLimitedByMemory) {
  constexpr std::uint64_t kGiB = 1ull << 30;
  constexpr std::uint64_t kAny = ~0ull;
  const struct {
    WorkerBudget budget;
    unsigned workers;
  } table[] = {
      {{8, 64 * kGiB, kGiB, kGiB}, 8},
      {{8, 5 * kGiB, kGiB, kGiB}, 4},
      {{8, 5 * kGiB - 1, kGiB, kGiB}, 3},
      {{8, kGiB / 2, kGiB, kGiB}, 1},
      {{8, kGiB, kGiB, kGiB}, 1},
      {{8, kAny, kGiB, kGiB}, 8},
      {{0, kAny, kGiB, kGiB}, 1},
      {{8, kGiB, 0, 0}, 8},
      {{8, 0, 0, 0}, 8},
      {{kAny & 0xffffffff, kAny, 1, 0}, ~0u},
  };
  for (const auto& [budget, workers] : table) {
    EXPECT_EQ(workers_for_budget(budget), workers)
        << budget.cores << " cores, " << budget.memory << " bytes, " << budget.worker_bytes << " each";
  }
}

}  // namespace
}  // namespace kiln::test
