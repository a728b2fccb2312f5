#include "compile/pch_shelf.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>
#include <vector>

#include "pch_shelf_fixture.hpp"
#include "support/forked.hpp"

namespace kiln::test {
namespace {

TEST_F(PchShelfTest, MakesNothingUntilSomethingIsAskedThatNeedsIt) {
  PchShelf shelf = open();
  EXPECT_FALSE(shelf.find(key(1)).has_value());
  shelf.remove(key(1));
  shelf.clear();
  EXPECT_EQ(shelf.usage().files, 0u);
  EXPECT_FALSE(fs::exists(directory_.path("a")));
  EXPECT_NE(shelf.begin(key(1)), nullptr);
  struct stat status;
  ASSERT_EQ(stat(folder_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(PchShelfTest, FindsWhatWasPublishedAlsoInAnotherProcess) {
  PchShelf shelf = open();
  ASSERT_TRUE(make(shelf, 1, "content"));
  const auto found = shelf.find(key(1));
  ASSERT_TRUE(found.has_value());
  const Pch expected = described("content");
  EXPECT_EQ(found->path, path(1, ".pch"));
  EXPECT_EQ(found->size, expected.size);
  EXPECT_EQ(found->checksum, expected.checksum);
  EXPECT_EQ(found->closure, expected.closure);
  EXPECT_EQ(encode(found->observations), encode(expected.observations));
  EXPECT_EQ(slurp(found->path), "content");
  EXPECT_EQ(count(".tmp"), 0);
  EXPECT_FALSE(shelf.find(key(2)).has_value());
  const Forked other([&](const Forked::Side& side) { side.say(open().find(key(1)) ? "found" : "not found"); });
  EXPECT_EQ(other.line(), "found");
}

TEST_F(PchShelfTest, ReplacesWhatWasThere) {
  PchShelf shelf = open();
  ASSERT_TRUE(make(shelf, 1, "old"));
  ASSERT_TRUE(make(shelf, 1, "new content"));
  const auto found = shelf.find(key(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(slurp(found->path), "new content");
  EXPECT_EQ(found->checksum, described("new content").checksum);
}

TEST_F(PchShelfTest, LeavesNothingOfWhatWasNotPublished) {
  PchShelf shelf = open();
  {
    const auto making = shelf.begin(key(1));
    ASSERT_NE(making, nullptr);
    spit(making->path(), "half");
    EXPECT_EQ(shelf.usage().bytes, 4u);
  }
  EXPECT_EQ(shelf.usage().files, 0u);
  EXPECT_FALSE(shelf.find(key(1)).has_value());
  EXPECT_TRUE(make(shelf, 1, "content"));
}

TEST_F(PchShelfTest, DoesNotPublishAFileOfAnotherSizeOrNone) {
  PchShelf shelf = open();
  ASSERT_TRUE(make(shelf, 1, "old"));
  const auto making = shelf.begin(key(1));
  ASSERT_NE(making, nullptr);
  EXPECT_FALSE(making->publish(described("content")).ok());
  spit(making->path(), "conten");
  EXPECT_EQ(making->publish(described("content")).error().code, Code::Corrupt);
  EXPECT_TRUE(shelf.find(key(1)).has_value()) << "what was there is as good as before";
  spit(making->path(), "content");
  EXPECT_TRUE(making->publish(described("content")).ok());
  EXPECT_FALSE(making->publish(described("content")).ok()) << "it was published already";
  EXPECT_TRUE(shelf.find(key(1)).has_value());
}

TEST_F(PchShelfTest, LetsOneMakeAKeyAtATimeWithinAProcess) {
  PchShelf shelf = open();
  PchShelf another = open();
  auto making = shelf.begin(key(1));
  ASSERT_NE(making, nullptr);
  EXPECT_EQ(shelf.begin(key(1)), nullptr);
  EXPECT_EQ(another.begin(key(1)), nullptr);
  EXPECT_NE(another.begin(key(2)), nullptr);
  making.reset();
  EXPECT_NE(another.begin(key(1)), nullptr);
}

TEST_F(PchShelfTest, DoesNotBeginWhatAnotherProcessMakes) {
  PchShelf shelf = open();
  const Forked other([&](const Forked::Side& side) {
    PchShelf its = open();
    auto making = its.begin(key(1));
    spit(making->path(), "content");
    side.say("makes");
    (void)side.hear();
    side.say(making->publish(described("content")).ok() ? "published" : "failed");
    making.reset();
    side.say("done");
    (void)side.hear();
  });
  ASSERT_EQ(other.line(), "makes");
  EXPECT_EQ(shelf.begin(key(1)), nullptr);
  EXPECT_NE(shelf.begin(key(2)), nullptr);
  EXPECT_EQ(count(".tmp"), 1) << "what is being made is not swept";
  shelf.clear();
  EXPECT_EQ(count(".tmp"), 1) << "nor cleared";
  other.say("go on");
  ASSERT_EQ(other.line(), "published");
  ASSERT_EQ(other.line(), "done");
  EXPECT_TRUE(shelf.find(key(1)).has_value());
  EXPECT_NE(shelf.begin(key(1)), nullptr);
}

TEST_F(PchShelfTest, NeverGivesTheNameOfADeadMakersFileToTheNext) {
  PchShelf shelf = open();
  const std::string first = shelf.begin(key(1))->path();
  EXPECT_NE(shelf.begin(key(1))->path(), first);
}

TEST_F(PchShelfTest, GivesAKeyToExactlyOneOfTwoProcessesThatBeginAtOnce) {
  for (int round = 0; round < 30; ++round) {
    const auto race = [&](const Forked::Side& side) {
      PchShelf its = open();
      side.say("ready");
      (void)side.hear();
      const auto making = its.begin(key(round));
      if (making != nullptr) spit(making->path(), "x");
      side.say(making != nullptr ? "mine" : "not mine");
      (void)side.hear();
    };
    const Forked one(race);
    const Forked two(race);
    ASSERT_EQ(one.line(), "ready");
    ASSERT_EQ(two.line(), "ready");
    one.say("go");
    two.say("go");
    const int won = (one.line() == "mine" ? 1 : 0) + (two.line() == "mine" ? 1 : 0);
    ASSERT_EQ(won, 1) << "in round " << round;
  }
}

TEST_F(PchShelfTest, KeepsAParentsMakingFromItsForkedChildren) {
  PchShelf shelf = open();
  auto making = shelf.begin(key(1));
  ASSERT_NE(making, nullptr);
  spit(making->path(), "content");
  Forked child([&](const Forked::Side& side) {
    side.say(shelf.begin(key(1)) == nullptr ? "not mine" : "mine");
    side.say(making->publish(described("content")).ok() ? "published" : "refused");
    making.reset();
    side.say(shelf.begin(key(1)) == nullptr ? "not mine" : "mine");
    side.say(make(shelf, 2, "its own") ? "made" : "failed");
  });
  EXPECT_EQ(child.line(), "not mine");
  EXPECT_EQ(child.line(), "refused");
  EXPECT_EQ(child.line(), "not mine");
  EXPECT_EQ(child.line(), "made");
  ASSERT_EQ(child.exit_code(), 0);
  EXPECT_TRUE(making->publish(described("content")).ok());
  EXPECT_TRUE(shelf.find(key(1)).has_value());
  EXPECT_TRUE(shelf.find(key(2)).has_value());
}

TEST_F(PchShelfTest, RemovesWhatIsDamagedHoweverItIs) {
  PchShelf shelf = open();
  ASSERT_TRUE(make(shelf, 1, "content"));
  const std::string good = slurp(path(1, ".kpch"));
  std::string flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);
  const std::vector<std::string> bad = {
      "", "K", flipped, good.substr(0, good.size() - 1), good + "x", encode_pch(key(2), "here", described("content"))};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    ASSERT_TRUE(make(shelf, 1, "content"));
    spit(path(1, ".kpch"), bad[i]);
    SCOPED_TRACE(i);
    expect_not_found_and_removed(shelf, 1);
  }
}

TEST_F(PchShelfTest, RemovesALargeFileOfAnotherSize) {
  PchShelf shelf = open();
  for (const std::string content : {"conten", "content and more", ""}) {
    ASSERT_TRUE(make(shelf, 1, "content"));
    spit(path(1, ".pch"), content);
    expect_not_found_and_removed(shelf, 1);
  }
  ASSERT_TRUE(make(shelf, 1, "content"));
  fs::remove(path(1, ".pch"));
  expect_not_found_and_removed(shelf, 1);
}

TEST_F(PchShelfTest, RemovesWhatAnotherHostMadeAndTellsNobodyItsName) {
  PchShelf there = open(1 << 20, "a-host-of-some-name");
  ASSERT_TRUE(make(there, 1, "content"));
  EXPECT_EQ(slurp(path(1, ".kpch")).find("a-host-of-some-name"), std::string::npos);
  PchShelf here = open();
  expect_not_found_and_removed(here, 1);
}

TEST_F(PchShelfTest, KnowsThisMachineAgain) {
  PchShelf shelf = open(1 << 20, "");
  ASSERT_TRUE(make(shelf, 1, "content"));
  EXPECT_TRUE(open(1 << 20, "").find(key(1)).has_value());
  EXPECT_FALSE(open().find(key(1)).has_value());
}

TEST_F(PchShelfTest, DoesNotRemoveDamageThatSomebodyIsReplacing) {
  PchShelf shelf = open();
  ASSERT_TRUE(make(shelf, 1, "content"));
  spit(path(1, ".kpch"), "damaged");
  const auto making = shelf.begin(key(1));
  EXPECT_FALSE(shelf.find(key(1)).has_value());
  EXPECT_TRUE(fs::exists(path(1, ".pch")));
  shelf.remove(key(1));
  EXPECT_TRUE(fs::exists(path(1, ".pch")));
  spit(making->path(), "content");
  EXPECT_TRUE(making->publish(described("content")).ok());
  EXPECT_TRUE(shelf.find(key(1)).has_value());
}

TEST_F(PchShelfTest, IsAsIfEmptyInAFolderThatCannotBeUsed) {
  const auto expect_nothing = [](const std::string& folder) {
    PchShelf shelf({.folder = folder, .host = "here"});
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(shelf.find(key(1)).has_value()) << folder;
      EXPECT_FALSE(shelf.asked_before(key(1))) << folder;
      EXPECT_EQ(shelf.begin(key(1)), nullptr) << folder;
    }
    shelf.remove(key(1));
    shelf.clear();
    EXPECT_EQ(shelf.usage().files, 0u) << folder;
  };
  spit(directory_.path("file"), "x");
  fs::create_directory(directory_.path("open"));
  fs::permissions(directory_.path("open"), fs::perms::all);
  spit(directory_.path("open/") + key(1).hex() + ".pch", "content");
  spit(directory_.path("open/") + key(1).hex() + ".kpch", encode_pch(key(1), "here", described("content")));
  expect_nothing("");
  expect_nothing(directory_.path("file"));
  expect_nothing(directory_.path("file/below"));
  expect_nothing(directory_.path("open"));
  EXPECT_TRUE(fs::exists(directory_.path("open/") + key(1).hex() + ".pch"));
}

TEST_F(PchShelfTest, GoesOnWhenItsFolderIsRemovedUnderIt) {
  PchShelf shelf = open();
  const auto making = shelf.begin(key(1));
  spit(making->path(), "content");
  fs::remove_all(folder_);
  EXPECT_FALSE(making->publish(described("content")).ok());
  EXPECT_TRUE(make(shelf, 2, "content"));
  EXPECT_TRUE(shelf.find(key(2)).has_value());
}

TEST_F(PchShelfTest, ServesManyThreadsAtOnce) {
  PchShelf shelf = open(3000);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int turn = 0; turn < 40; ++turn) {
        const int number = (t + turn) % 5;
        (void)make(shelf, number, std::string(500 + static_cast<std::size_t>(number), 'x'));
        const auto found = shelf.find(key(number));
        if (found && found->size != 500u + static_cast<unsigned>(number)) ++wrong;
        if (turn % 10 == 9) shelf.remove(key(number));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(count(".tmp"), 0);
  ASSERT_TRUE(make(shelf, 9, "content"));  // nobody is in the way of making room now
  EXPECT_LE(shelf.usage().bytes, 3000u);
}

}  // namespace
}  // namespace kiln::test
