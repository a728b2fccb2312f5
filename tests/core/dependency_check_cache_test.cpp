// SPDX-License-Identifier: Apache-2.0
#include "core/dependency_check_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using State = DependencySet::State;
using std::chrono::milliseconds;

class CheckedItemsTest : public ::testing::Test {
 protected:
  CheckedItemsTest() {
    for (const char* name : {"root", "other", "work"}) std::filesystem::create_directory(directory_.path(name));
    write_text(directory_.path("root/h.h"), "header");
    dependency_set_.items = {{0, State::Read, "h.h", sha256("header"), 0}, {0, State::Absent, "none.h", {}, 0}};
  }
  PathRoots places(const char* root = "root") const { return {directory_.path("work"), {{directory_.path(root), ""}}}; }
  /// Returns whether the check passes for a request of that time.
  bool is_right_for(std::optional<std::chrono::nanoseconds> asked) { return is_right_for(asked, places()); }
  bool is_right_for(std::optional<std::chrono::nanoseconds> asked, const PathRoots& where) {
    return !checked_.check(dependency_set_, where, digests_, asked);
  }

  TemporaryDirectory directory_;
  ManualClock clock_;
  FileDigestCache digests_{"", clock_};
  DependencyCheckCache checked_{clock_};
  DependencySet dependency_set_;
};

TEST_F(CheckedItemsTest, FileCheckedSinceRequestIsNotCheckedAgain) {
  const auto asked = clock_.steady();
  EXPECT_TRUE(is_right_for(asked));
  write_text(directory_.path("root/h.h"), "HEADER");
  write_text(directory_.path("root/none.h"), "");
  EXPECT_TRUE(is_right_for(asked)) << "the file matched after the request";
}

TEST_F(CheckedItemsTest, RequestAfterEditSeesIt) {
  EXPECT_TRUE(is_right_for(clock_.steady()));
  write_text(directory_.path("root/h.h"), "HEADER");
  EXPECT_FALSE(is_right_for(clock_.steady()));
  write_text(directory_.path("root/h.h"), "header");
  EXPECT_TRUE(is_right_for(clock_.steady()));
  write_text(directory_.path("root/none.h"), "");
  EXPECT_FALSE(is_right_for(clock_.steady()));
}

TEST_F(CheckedItemsTest, ChecksEveryTimeWithoutRequestTime) {
  EXPECT_TRUE(is_right_for(std::nullopt));
  write_text(directory_.path("root/h.h"), "HEADER");
  EXPECT_FALSE(is_right_for(std::nullopt));
}

TEST_F(CheckedItemsTest, CheckIsValidForOneSecond) {
  const auto asked = clock_.steady();
  EXPECT_TRUE(is_right_for(asked));
  write_text(directory_.path("root/h.h"), "HEADER");
  clock_.advance(DependencyCheckCache::kMaxAge + milliseconds(1));
  EXPECT_FALSE(is_right_for(asked));
}

TEST_F(CheckedItemsTest, MismatchIsCheckedAgain) {
  const auto asked = clock_.steady();
  write_text(directory_.path("root/h.h"), "HEADER");
  EXPECT_FALSE(is_right_for(asked));
  write_text(directory_.path("root/h.h"), "header");
  EXPECT_TRUE(is_right_for(asked));
}

TEST_F(CheckedItemsTest, SameNameInOtherRootOrWithOtherContentIsDistinct) {
  const auto asked = clock_.steady();
  EXPECT_TRUE(is_right_for(asked));
  EXPECT_FALSE(is_right_for(asked, places("other")));
  dependency_set_.items[0].digest = sha256("another");
  EXPECT_FALSE(is_right_for(asked));
  dependency_set_.items[0] = {0, State::Absent, "h.h", {}, 0};
  EXPECT_FALSE(is_right_for(asked));
}

TEST_F(CheckedItemsTest, ConcurrentChecksAllSeeMismatch) {
  constexpr int kFiles = 200;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = std::to_string(i) + ".h";
    write_text(directory_.path("root/" + name), name);
    dependency_set_.items.push_back({0, State::Read, name, sha256(name), 0});
  }
  for (const bool differs : {false, true}) {
    if (differs) write_text(directory_.path("root/121.h"), "another");
    const auto asked = clock_.steady();
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { right += is_right_for(asked) ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, differs ? 0 : 4);
  }
}

// With `digest = always` a request reads each file once, however many units share it, and the next request reads it
// again.
TEST_F(CheckedItemsTest, DigestAlwaysReadsEachFileOncePerRequest) {
  clock_.advance(std::chrono::seconds(10));  // makes the header old
  FileDigestCache always("", FileDigestCache::Options{true}, clock_);
  const auto right_for = [&](std::chrono::nanoseconds asked) {
    return !checked_.check(dependency_set_, places(), always, asked);
  };
  const auto first = clock_.steady();
  EXPECT_TRUE(right_for(first));
  EXPECT_TRUE(right_for(first));
  EXPECT_EQ(always.computed_count(), 1u);
  EXPECT_TRUE(right_for(clock_.steady()));
  EXPECT_EQ(always.computed_count(), 2u);
}

}  // namespace
}  // namespace kiln::test
