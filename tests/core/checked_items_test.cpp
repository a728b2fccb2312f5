#include "core/checked_items.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/asked_at.hpp"
#include "base/hash.hpp"
#include "support/files.hpp"
#include "support/manual_clock.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using State = Closure::State;
using std::chrono::milliseconds;

class CheckedItemsTest : public ::testing::Test {
 protected:
  CheckedItemsTest() {
    for (const char* name : {"root", "other", "work"}) std::filesystem::create_directory(folder_.path(name));
    spit(folder_.path("root/h.h"), "header");
    closure_.items = {{0, State::Read, "h.h", sha256("header"), 0}, {0, State::Absent, "none.h", {}, 0}};
  }
  Places places(const char* root = "root") const { return {folder_.path("work"), {{folder_.path(root), ""}}}; }
  bool is_right(const Places& where) { return !checked_.check(closure_, where, digests_); }
  bool is_right() { return is_right(places()); }
  /// For somebody who asked at that moment.
  bool is_right_for(std::chrono::nanoseconds asked) {
    const AskedAt scope(asked);
    return is_right();
  }

  TemporaryDirectory folder_;
  ManualClock clock_;
  FileDigests digests_{"", clock_};
  CheckedItems checked_{clock_};
  Closure closure_;
};

TEST_F(CheckedItemsTest, AFileThatWasSeenSinceItWasAskedForIsNotLookedAtAgain) {
  const auto asked = clock_.steady();
  EXPECT_TRUE(is_right_for(asked));
  spit(folder_.path("root/h.h"), "HEADER");
  spit(folder_.path("root/none.h"), "");
  EXPECT_TRUE(is_right_for(asked)) << "it was as the closure says after it had been asked for";
}

TEST_F(CheckedItemsTest, WhoeverAsksAfterAnEditSeesIt) {
  EXPECT_TRUE(is_right_for(clock_.steady()));
  spit(folder_.path("root/h.h"), "HEADER");
  EXPECT_FALSE(is_right_for(clock_.steady()));
  spit(folder_.path("root/h.h"), "header");
  EXPECT_TRUE(is_right_for(clock_.steady()));
  spit(folder_.path("root/none.h"), "");
  EXPECT_FALSE(is_right_for(clock_.steady()));
}

TEST_F(CheckedItemsTest, WhereNobodySaysWhenEachLookIsNew) {
  EXPECT_TRUE(is_right());
  spit(folder_.path("root/h.h"), "HEADER");
  EXPECT_FALSE(is_right());
}

TEST_F(CheckedItemsTest, ALookCountsForASecond) {
  const auto asked = clock_.steady();
  EXPECT_TRUE(is_right_for(asked));
  spit(folder_.path("root/h.h"), "HEADER");
  clock_.advance(CheckedItems::kHolds + milliseconds(1));
  EXPECT_FALSE(is_right_for(asked));
}

TEST_F(CheckedItemsTest, WhatDiffersIsLookedAtAgain) {
  const auto asked = clock_.steady();
  spit(folder_.path("root/h.h"), "HEADER");
  EXPECT_FALSE(is_right_for(asked));
  spit(folder_.path("root/h.h"), "header");
  EXPECT_TRUE(is_right_for(asked));
}

TEST_F(CheckedItemsTest, TheSameNameInAnotherPlaceOrWithAnotherContentIsAnotherFile) {
  const AskedAt scope(clock_.steady());
  EXPECT_TRUE(is_right());
  EXPECT_FALSE(is_right(places("other")));
  closure_.items[0].digest = sha256("another");
  EXPECT_FALSE(is_right());
  closure_.items[0] = {0, State::Absent, "h.h", {}, 0};
  EXPECT_FALSE(is_right());
}

TEST_F(CheckedItemsTest, ThreadsThatCheckAtOnceAllSeeTheOneFileThatDiffers) {
  constexpr int kFiles = 200;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = std::to_string(i) + ".h";
    spit(folder_.path("root/" + name), name);
    closure_.items.push_back({0, State::Read, name, sha256(name), 0});
  }
  for (const bool differs : {false, true}) {
    if (differs) spit(folder_.path("root/121.h"), "another");
    const auto asked = clock_.steady();
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { right += is_right_for(asked) ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, differs ? 0 : 4);
  }
}

}  // namespace
}  // namespace kiln::test
