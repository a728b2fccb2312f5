#include "compile/worker_slots.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "support/eventually.hpp"
#include "support/files.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using Slots = std::vector<WorkerSlots::Slot>;

// As many of the first `most` slots as can be had.
Slots take_all(const WorkerSlots& slots, unsigned most) {
  Slots taken;
  while (taken.size() < most) {
    auto slot = slots.take(most);
    if (!slot) break;
    taken.push_back(std::move(*slot));
  }
  return taken;
}

// How many of the first `most` a fresh process gets.
std::string free_elsewhere(const std::string& folder, unsigned most) {
  const Forked child(
      [&](const Forked::Side& side) { side.say(std::to_string(take_all(WorkerSlots(folder), most).size())); });
  return child.line();
}

std::string wanted_elsewhere(const std::string& folder) {
  const Forked child(
      [&](const Forked::Side& side) { side.say(WorkerSlots(folder).wanted_elsewhere() ? "wanted" : "not wanted"); });
  return child.line();
}

TEST(WorkerSlots, MakeNothingBeforeTheFirstQuestionAndThenOneEmptyFile) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path("a/b"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("a")));
  const Slots taken = take_all(slots, 3);
  EXPECT_EQ(taken.size(), 3u);
  EXPECT_EQ(files_below(folder.path()), std::vector<std::string>{folder.path("a/b/slots")});
  EXPECT_EQ(std::filesystem::file_size(folder.path("a/b/slots")), 0u);
}

TEST(WorkerSlots, AreAsManyAsAskedForAndComeBackWhenLetGo) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  EXPECT_FALSE(slots.take(0));
  Slots taken = take_all(slots, 3);
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_FALSE(slots.take(3));
  EXPECT_FALSE(WorkerSlots(folder.path()).take(3)) << "another object on the same folder has no slots of its own";
  EXPECT_TRUE(slots.take(4)) << "who bears more workers may have one more";
  taken.erase(taken.begin());
  EXPECT_TRUE(slots.take(3));
  EXPECT_EQ(take_all(slots, 3).size(), 1u);
}

TEST(WorkerSlots, GoOnLivingWhenTheyAreMovedAndAreLetGoOnce) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  auto first = slots.take(2);
  auto second = slots.take(2);
  ASSERT_TRUE(first && second);
  *first = std::move(*second);  // the first slot goes, the second stays
  EXPECT_EQ(take_all(slots, 2).size(), 1u);
  second.reset();
  EXPECT_EQ(take_all(slots, 2).size(), 1u);
  first.reset();
  EXPECT_EQ(take_all(slots, 2).size(), 2u);
}

TEST(WorkerSlots, MayOutliveTheObjectThatGaveThemAndBeLetGoOnAnotherThread) {
  const TemporaryDirectory folder;
  auto slot = WorkerSlots(folder.path()).take(1);
  ASSERT_TRUE(slot);
  EXPECT_EQ(free_elsewhere(folder.path(), 1), "0");
  std::thread([&] { slot.reset(); }).join();
  EXPECT_EQ(free_elsewhere(folder.path(), 1), "1");
}

TEST(WorkerSlots, AreExclusiveAmongThreads) {
  constexpr int kMost = 3;
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  std::atomic<int> inside{0};
  std::atomic<int> too_many{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 100;) {
        const auto slot = slots.take(kMost);
        if (!slot) {
          std::this_thread::yield();
          continue;
        }
        if (++inside > kMost) ++too_many;
        std::this_thread::yield();
        --inside;
        ++turn;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(too_many, 0);
}

// What the processes of a test count together.
struct Counters {
  std::atomic<int> inside{0};
  std::atomic<int> most_seen{0};
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

TEST(WorkerSlots, AreNeverMoreThanTheMostAmongEightProcesses) {
  constexpr int kMost = 3;
  const TemporaryDirectory folder;
  const SharedCounters shared;
  std::vector<Forked> processes;
  for (int p = 0; p < 8; ++p) {
    processes.emplace_back([&](const Forked::Side&) {
      const WorkerSlots slots(folder.path());
      for (int turn = 0; turn < 300;) {
        const auto slot = slots.take(kMost);
        if (!slot) {
          sched_yield();
          continue;
        }
        const int now = ++shared->inside;
        if (now > kMost) ++shared->too_many;
        for (int seen = shared->most_seen; seen < now && !shared->most_seen.compare_exchange_weak(seen, now);) continue;
        sched_yield();
        --shared->inside;
        ++turn;
      }
    });
  }
  for (Forked& process : processes) EXPECT_EQ(process.exit_code(), 0);
  EXPECT_EQ(shared->too_many, 0);
  EXPECT_EQ(shared->most_seen, kMost) << "the processes never met, and the test showed nothing";
}

TEST(WorkerSlots, OfAKilledProcessComeFreeAtOnce) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  Forked holder([&](const Forked::Side& side) {
    const Slots taken = take_all(slots, 4);
    side.say(std::to_string(taken.size()));
    (void)side.hear();
  });
  ASSERT_EQ(holder.line(), "4");
  EXPECT_FALSE(slots.take(4));
  holder.kill_now();
  EXPECT_EQ(take_all(slots, 4).size(), 4u);
}

TEST(WorkerSlots, OfAKilledProcessAreNotKeptByAChildOfItsThatSleeps) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  Forked holder([&](const Forked::Side& side) {
    const Slots taken = take_all(slots, 2);
    const WorkerSlots::Wish wish = slots.wish();
    const pid_t sleeper = fork();
    if (sleeper == 0) {
      for (;;) pause();
    }
    side.say(std::to_string(sleeper));
    (void)side.hear();
  });
  const pid_t sleeper = static_cast<pid_t>(std::atoi(holder.line().c_str()));
  ASSERT_GT(sleeper, 0);
  EXPECT_FALSE(slots.take(2));
  EXPECT_TRUE(slots.wanted_elsewhere());
  holder.kill_now();
  EXPECT_EQ(take_all(slots, 2).size(), 2u);
  EXPECT_FALSE(slots.wanted_elsewhere());
  EXPECT_EQ(kill(sleeper, 0), 0) << "the child was to outlive its parent";
  kill(sleeper, SIGKILL);
}

TEST(WorkerSlots, OfAParentAreNotLetGoByTheCopiesOfItsChild) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  Slots taken = take_all(slots, 1);
  std::optional<WorkerSlots::Wish> wish = slots.wish();
  ASSERT_EQ(taken.size(), 1u);
  const Forked child([&](const Forked::Side& side) {
    taken.clear();
    wish.reset();
    side.say(slots.take(1) ? "taken" : "held");
    side.say(slots.wanted_elsewhere() ? "wanted" : "not wanted");
    const auto own = slots.take(2);
    side.say(own ? "taken" : "held");
    (void)side.hear();
  });
  EXPECT_EQ(child.line(), "held");
  EXPECT_EQ(child.line(), "wanted");
  EXPECT_EQ(child.line(), "taken");
  EXPECT_EQ(free_elsewhere(folder.path(), 2), "0");
  EXPECT_EQ(wanted_elsewhere(folder.path()), "wanted");
}

TEST(WorkerSlots, OfAChildSurviveTheCopyOfTheSameSlotOfItsParent) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  Slots taken = take_all(slots, 1);
  const Forked child([&](const Forked::Side& side) {
    (void)side.hear();
    const auto own = slots.take(1);
    taken.clear();
    side.say(own ? "taken" : "held");
    (void)side.hear();
  });
  taken.clear();
  child.say("take it");
  ASSERT_EQ(child.line(), "taken");
  EXPECT_FALSE(slots.take(1));
}

TEST(WorkerSlots, WorkInAChildThatWasForkedWhileOtherThreadsUsedThem) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      const auto slot = slots.take(1);
      const auto wish = slots.wish();
    }
  });
  for (int i = 0; i < 50; ++i) {
    Forked child([&](const Forked::Side& side) {
      side.say(take_all(slots, 2).empty() ? "none" : "some");
      const auto wish = slots.wish();
      (void)slots.wanted_elsewhere();
    });
    ASSERT_EQ(child.line(), "some") << i;
    ASSERT_EQ(child.exit_code(), 0);
  }
  stop = true;
  busy.join();
}

TEST(WorkerSlots, ShowAWishToOtherProcessesAndNotToOnesOwn) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  EXPECT_EQ(wanted_elsewhere(folder.path()), "not wanted");
  const Slots taken = take_all(slots, 2);
  EXPECT_EQ(wanted_elsewhere(folder.path()), "not wanted") << "a slot is not a wish";
  std::optional<WorkerSlots::Wish> first = slots.wish();
  EXPECT_FALSE(slots.wanted_elsewhere());
  EXPECT_EQ(wanted_elsewhere(folder.path()), "wanted");
  std::optional<WorkerSlots::Wish> second = WorkerSlots(folder.path()).wish();
  first.reset();
  EXPECT_EQ(wanted_elsewhere(folder.path()), "wanted") << "the second wish lives";
  second.reset();
  EXPECT_EQ(wanted_elsewhere(folder.path()), "not wanted");
}

TEST(WorkerSlots, ForgetTheWishOfAProcessThatEndsOrIsKilled) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path());
  const auto wisher = [&](const Forked::Side& side) {
    new WorkerSlots::Wish(slots.wish());  // never let go
    side.say("wished");
    (void)side.hear();
  };
  Forked ends(wisher);
  Forked killed(wisher);
  ASSERT_EQ(ends.line(), "wished");
  ASSERT_EQ(killed.line(), "wished");
  EXPECT_TRUE(slots.wanted_elsewhere());
  ends.say("end");
  EXPECT_EQ(ends.exit_code(), 0);
  EXPECT_TRUE(slots.wanted_elsewhere());
  killed.kill_now();
  EXPECT_FALSE(slots.wanted_elsewhere());
}

TEST(WorkerSlots, AreWithoutBoundWhereTheFolderCannotBeUsed) {
  const TemporaryDirectory folder;
  spit(folder.path("file"), "x");
  std::filesystem::create_directory(folder.path("odd"));
  ASSERT_EQ(mkfifo(folder.path("odd/slots").c_str(), 0600), 0);
  for (const std::string& path : {folder.path("file"), folder.path("file/below"), folder.path("odd")}) {
    const WorkerSlots slots(path);
    const auto first = slots.take(1);
    EXPECT_TRUE(first) << path;
    EXPECT_TRUE(slots.take(1)) << path;
    EXPECT_FALSE(slots.take(0)) << path;
    const WorkerSlots::Wish wish = slots.wish();
    EXPECT_FALSE(slots.wanted_elsewhere()) << path;
  }
}

TEST(WorkerSlots, GoOnInANewFileWhenTheFolderIsSweptUnderThem) {
  const TemporaryDirectory folder;
  const WorkerSlots slots(folder.path("swept"));
  const auto old = slots.take(1);
  std::filesystem::remove_all(folder.path("swept"));
  const auto fresh = slots.take(1);
  EXPECT_TRUE(fresh);
  EXPECT_EQ(free_elsewhere(folder.path("swept"), 1), "0");
}

TEST(WorkersWithin, IsOnePerCoreAsFarAsMemoryReachesAndAtLeastOne) {
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
    EXPECT_EQ(workers_within(budget), workers)
        << budget.cores << " cores, " << budget.memory << " bytes, " << budget.worker_bytes << " each";
  }
}

}  // namespace
}  // namespace kiln::test
