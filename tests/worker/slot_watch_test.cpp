// SPDX-License-Identifier: Apache-2.0
#include "worker/slot_watch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

// A fixture in which this process holds the slots. The test writes the process state that the kernel would report, and
// sets the time.
class SlotWatchTest : public testing::Test {
 protected:
  static constexpr pid_t kWorker = 4'000'001;

  void say(pid_t process, char state, pid_t parent, unsigned cpu_time) const {
    const std::string place = directory_.path("root/proc/" + std::to_string(process));
    std::filesystem::create_directories(place);
    write_text(place + "/stat", std::to_string(process) + " (a (b) c) " + state + " " + std::to_string(parent) +
                                    " 1 1 0 -1 0 0 0 0 0 " + std::to_string(cpu_time) + " 0 0 0 20 0 1 0 12345 0 0\n");
  }
  void hold_all(unsigned maximum) {
    for (unsigned i = 0; i < maximum; ++i) held_.push_back(slots_.take(maximum).value());
    say(getpid(), 'S', 1, 100);
  }
  std::optional<WorkerSlots::Index> look(unsigned maximum, bool urgent = false) {
    return watch_.look(maximum, urgent, now_).extra;
  }
  // Repeats the check for this time and returns the last result.
  std::optional<WorkerSlots::Index> look_for(std::chrono::milliseconds time, unsigned maximum, bool urgent = false) {
    std::optional<WorkerSlots::Index> last;
    for (const auto end = now_ + time; now_ < end;) {
      now_ += 500ms;
      last = look(maximum, urgent);
    }
    return last;
  }

  const TemporaryDirectory directory_;
  const WorkerSlots slots_{directory_.path("slots")};
  SlotWatch watch_{slots_, SystemFileRoot{directory_.path("root")}};
  std::chrono::nanoseconds now_{1000s};
  std::vector<WorkerSlots::Slot> held_;
};

TEST_F(SlotWatchTest, AllowsNoExtraSlotWhileOneIsFree) {
  hold_all(1);
  say(getpid(), 'T', 1, 100);
  EXPECT_EQ(look_for(30s, 2), std::nullopt);
}

TEST_F(SlotWatchTest, AllowsExtraSlotAtSecondCheckOfStoppedHolder) {
  for (const char state : {'T', 't'}) {
    held_.clear();
    hold_all(2);
    now_ += 1min;
    EXPECT_EQ(look(2), std::nullopt);
    say(getpid(), state, 1, 100);
    EXPECT_EQ(look_for(500ms, 2), std::nullopt) << "a traced process is briefly stopped at times";
    EXPECT_EQ(look_for(500ms, 2), 0u);
    say(getpid(), 'S', 1, 100);
    EXPECT_EQ(look_for(500ms, 2), std::nullopt);
  }
}

TEST_F(SlotWatchTest, ChecksHoldersFourTimesASecond) {
  hold_all(1);
  say(getpid(), 'T', 1, 100);
  EXPECT_EQ(look(1), std::nullopt);
  now_ += 249ms;
  EXPECT_EQ(look(1), std::nullopt) << "this is not the second check";
  now_ += 1ms;
  EXPECT_EQ(look(1), 0u);
}

TEST_F(SlotWatchTest, AllowsExtraSlotAfterTwoSecondsWithoutCpuTime) {
  hold_all(2);
  say(kWorker, 'S', getpid(), 7);
  held_[1].show_worker(kWorker);
  EXPECT_EQ(look_for(2s, 2), std::nullopt);
  say(kWorker, 'S', getpid(), 8);
  EXPECT_EQ(look_for(2s, 2), std::nullopt);
  say(kWorker, 'R', getpid(), 8);
  EXPECT_EQ(look_for(8s, 2), std::nullopt) << "it is runnable but gets no core";
  say(kWorker, 'S', getpid(), 8);
  EXPECT_EQ(look_for(2s, 2), 0u);
}

TEST_F(SlotWatchTest, UnknownHolderIsStuckAfterTenSeconds) {
  hold_all(2);
  EXPECT_EQ(look_for(10s, 2), std::nullopt);
  say(kWorker, 'S', getpid() + 1, 7);
  held_[0].show_worker(kWorker);  // started by another process, according to its state here
  EXPECT_EQ(look_for(10s, 2), std::nullopt) << "a slot has changed";
  EXPECT_EQ(look_for(1s, 2), 0u);
}

TEST_F(SlotWatchTest, AllowsNextExtraSlotOnlyIfFirstIsStuck) {
  hold_all(1);
  say(kWorker, 'S', getpid(), 7);
  say(kWorker + 1, 'S', getpid(), 7);
  held_[0].show_worker(kWorker);
  EXPECT_EQ(look_for(3s, 1), 0u);
  auto extra = slots_.take_extra(0);
  ASSERT_TRUE(extra);
  extra->show_worker(kWorker + 1);
  EXPECT_EQ(look_for(2s, 1), 0u) << "the slot is held";
  EXPECT_EQ(look_for(1s, 1), 1u);
  say(kWorker + 1, 'S', getpid(), 8);
  EXPECT_EQ(look_for(1s, 1), 0u);
}

TEST_F(SlotWatchTest, UrgentWorkNeedsReservedSlotHeldToo) {
  hold_all(1);
  say(kWorker, 'S', getpid(), 7);
  held_[0].show_worker(kWorker);
  EXPECT_EQ(look_for(4s, 1, true), std::nullopt);
  const auto reserved = slots_.take_reserved();
  ASSERT_TRUE(reserved);
  EXPECT_EQ(look_for(1s, 1, true), 0u);
}

TEST_F(SlotWatchTest, DiscardsObservationsAfterLongPause) {
  hold_all(1);
  say(kWorker, 'S', getpid(), 7);
  held_[0].show_worker(kWorker);
  EXPECT_EQ(look(1), std::nullopt);
  now_ += 1min;
  EXPECT_EQ(look(1), std::nullopt);
  EXPECT_EQ(look_for(2s, 1), 0u);
}

}  // namespace
}  // namespace kiln::test
