#include "compile/pch_shelf.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "support/files.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

Digest key(int number) { return sha256("precompiled header " + std::to_string(number)); }

Pch described(const std::string& content) {
  Pch pch;
  pch.size = content.size();
  pch.checksum = xxh3(as_bytes(content));
  pch.closure.items.push_back({0, Closure::State::Read, "cub/cub.cuh", sha256("cub"), 0});
  pch.closure.items.push_back({1, Closure::State::Absent, "cub/cub.cuh", {}, 0});
  Observation seen;
  seen.path = "/include/cub/cub.cuh";
  seen.state = Observation::State::Read;
  seen.stamp = {1, 2, 3, 4, 5};
  seen.asked_ns = 6;
  pch.observations.push_back(seen);
  return pch;
}

// Does what a compiler and its master do.
bool make(PchShelf& shelf, int number, const std::string& content) {
  const auto making = shelf.begin(key(number));
  if (making == nullptr) return false;
  spit(making->path(), content);
  return making->publish(described(content)).ok();
}

class PchShelfTest : public testing::Test {
 protected:
  PchShelf open(std::uint64_t bound = 1 << 20, const std::string& host = "here") {
    return PchShelf({.folder = folder_, .size_bound = bound, .host = host});
  }
  std::string path(int number, const std::string& suffix) const { return folder_ + "/" + key(number).hex() + suffix; }
  // How many files have this suffix.
  int count(const std::string& suffix) const {
    int found = 0;
    for (const std::string& file : files_below(folder_)) found += file.ends_with(suffix) ? 1 : 0;
    return found;
  }
  void age(const std::string& file, std::chrono::hours by) const {
    fs::last_write_time(file, fs::last_write_time(file) - by);
  }
  void expect_not_found_and_removed(PchShelf& shelf, int number) {
    EXPECT_FALSE(shelf.find(key(number)).has_value());
    EXPECT_FALSE(fs::exists(path(number, ".kpch")));
    EXPECT_FALSE(fs::exists(path(number, ".pch")));
  }

  TemporaryDirectory directory_;
  const std::string folder_ = directory_.path("a/pch");
};

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

TEST_F(PchShelfTest, IsRidOfWhatAKilledMakerLeftAtTheNextProcesssFirstBegin) {
  Forked maker([&](const Forked::Side& side) {
    PchShelf its = open();
    const auto making = its.begin(key(1));
    spit(making->path(), "half");
    side.say("makes");
    (void)side.hear();
  });
  ASSERT_EQ(maker.line(), "makes");
  maker.kill_now();
  ASSERT_EQ(count(".tmp"), 1);
  PchShelf shelf = open();
  EXPECT_NE(shelf.begin(key(2)), nullptr);
  EXPECT_EQ(count(".tmp"), 0);
  EXPECT_TRUE(make(shelf, 1, "content"));
}

TEST_F(PchShelfTest, NeverGivesTheNameOfADeadMakersFileToTheNext) {
  PchShelf shelf = open();
  const std::string first = shelf.begin(key(1))->path();
  EXPECT_NE(shelf.begin(key(1))->path(), first);
}

TEST_F(PchShelfTest, SweepsHalvesOfPairsAndLeavesWholeOnesAndStrangersAlone) {
  {
    PchShelf shelf = open();
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE(make(shelf, i, "content"));
  }
  fs::remove(path(1, ".kpch"));
  fs::remove(path(2, ".pch"));
  spit(folder_ + "/readme.pch", "not ours");
  spit(folder_ + "/" + key(4).hex() + "tmp", "not ours");
  PchShelf shelf = open();
  ASSERT_NE(shelf.begin(key(9)), nullptr);
  EXPECT_FALSE(fs::exists(path(1, ".pch")));
  EXPECT_FALSE(fs::exists(path(2, ".kpch")));
  EXPECT_TRUE(shelf.find(key(3)).has_value());
  EXPECT_TRUE(fs::exists(folder_ + "/readme.pch"));
  EXPECT_TRUE(fs::exists(folder_ + "/" + key(4).hex() + "tmp"));
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

TEST_F(PchShelfTest, MakesRoomForTheNewestFromTheLeastRecentlyUsed) {
  const std::string content(1000, 'x');
  const std::uint64_t pair = content.size() + encode_pch(key(1), "here", described(content)).size();
  PchShelf shelf = open(3 * pair);
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(make(shelf, i, content));
  EXPECT_TRUE(shelf.find(key(1)).has_value());
  ASSERT_TRUE(make(shelf, 4, content));
  EXPECT_FALSE(shelf.find(key(2)).has_value()) << "it was used longest ago";
  EXPECT_FALSE(fs::exists(path(2, ".pch")));
  for (const int kept : {1, 3, 4}) EXPECT_TRUE(shelf.find(key(kept)).has_value()) << kept;
  EXPECT_EQ(shelf.usage().bytes, 3 * pair);
}

TEST_F(PchShelfTest, KeepsTheNewestEvenWhereItAlonePassesTheBound) {
  PchShelf shelf = open(10);
  ASSERT_TRUE(make(shelf, 1, "content"));
  ASSERT_TRUE(make(shelf, 2, "content"));
  EXPECT_FALSE(shelf.find(key(1)).has_value());
  EXPECT_TRUE(shelf.find(key(2)).has_value());
}

TEST_F(PchShelfTest, MakesNoRoomFromWhatSomebodyMakesAnew) {
  PchShelf shelf = open(10);
  ASSERT_TRUE(make(shelf, 1, "content"));
  const auto making = shelf.begin(key(1));
  ASSERT_TRUE(make(shelf, 2, "content"));
  EXPECT_TRUE(shelf.find(key(1)).has_value());
}

TEST_F(PchShelfTest, RemembersQuestionsForAMonth) {
  PchShelf shelf = open();
  EXPECT_FALSE(shelf.asked_before(key(1)));
  EXPECT_TRUE(shelf.asked_before(key(1)));
  EXPECT_FALSE(shelf.asked_before(key(2)));
  const Forked other([&](const Forked::Side& side) { side.say(open().asked_before(key(1)) ? "before" : "never"); });
  EXPECT_EQ(other.line(), "before");
  EXPECT_EQ(shelf.usage().files, 0u);
  age(path(1, ".asked"), std::chrono::hours(31 * 24));
  age(path(2, ".asked"), std::chrono::hours(29 * 24));
  ASSERT_NE(shelf.begin(key(3)), nullptr);
  EXPECT_FALSE(shelf.asked_before(key(1)));
  EXPECT_TRUE(shelf.asked_before(key(2)));
}

TEST_F(PchShelfTest, RemembersNoMoreThanSomeThousandQuestionsTheNewest) {
  fs::create_directories(folder_);
  fs::permissions(folder_, fs::perms::owner_all);
  for (int i = 0; i < 4100; ++i) spit(path(i, ".asked"), "");
  for (int i = 0; i < 4; ++i) age(path(i, ".asked"), std::chrono::hours(1));
  PchShelf shelf = open();
  ASSERT_NE(shelf.begin(key(0)), nullptr);
  EXPECT_EQ(count(".asked"), 4096);
  EXPECT_FALSE(shelf.asked_before(key(3)));
  EXPECT_TRUE(shelf.asked_before(key(4)));
}

TEST_F(PchShelfTest, TakesEverythingOffAndKeepsItsLocks) {
  PchShelf shelf = open();
  ASSERT_TRUE(make(shelf, 1, "content"));
  ASSERT_TRUE(make(shelf, 2, "content"));
  (void)shelf.asked_before(key(3));
  EXPECT_EQ(shelf.usage().files, 4u);
  EXPECT_GT(shelf.usage().bytes, 14u);
  shelf.remove(key(1));
  EXPECT_FALSE(shelf.find(key(1)).has_value());
  EXPECT_EQ(shelf.usage().files, 2u);
  shelf.clear();
  EXPECT_EQ(shelf.usage().files, 0u);
  EXPECT_EQ(shelf.usage().bytes, 0u);
  EXPECT_FALSE(shelf.asked_before(key(3)));
  EXPECT_TRUE(fs::exists(folder_ + "/locks"));
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

TEST(PchFormat, IsReadAsItWasWritten) {
  const std::string bytes = encode_pch(key(1), "here", described("content"));
  const auto read = decode_pch(bytes, key(1), "here");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(encode_pch(key(1), "here", *read), bytes);
}

TEST(PchFormat, RefusesAnotherVersionKeyOrHostAndSaysWhich) {
  const std::string bytes = encode_pch(key(1), "here", described("content"));
  std::string newer = bytes;
  newer[8] = 2;
  const auto refusal = [](const Result<Pch>& result) {
    if (result.ok()) return std::string("taken");
    EXPECT_EQ(result.error().code, Code::Corrupt);
    return result.error().message;
  };
  EXPECT_NE(refusal(decode_pch(newer, key(1), "here")).find("version 2"), std::string::npos);
  EXPECT_NE(refusal(decode_pch(bytes, key(2), "here")).find("another key"), std::string::npos);
  EXPECT_NE(refusal(decode_pch(bytes, key(1), "there")).find("another host"), std::string::npos);
}

TEST(PchFormat, RefusesEveryTruncationAndEveryFlippedBit) {
  const std::string bytes = encode_pch(key(1), "here", described("content"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(decode_pch(bytes.substr(0, size), key(1), "here").ok()) << size;
  }
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ASSERT_FALSE(decode_pch(damaged, key(1), "here").ok()) << bit;
  }
}

}  // namespace
}  // namespace kiln::test
