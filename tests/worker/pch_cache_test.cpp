// SPDX-License-Identifier: Apache-2.0
#include "worker/pch_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>
#include <vector>

#include "pch_cache_fixture.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {
namespace {

TEST_F(PchCacheTest, CreatesDirectoryOnFirstUse) {
  PchCache pch_cache = open();
  EXPECT_FALSE(pch_cache.find(key(1)).has_value());
  (void)pch_cache.remove(key(1));
  pch_cache.clear();
  EXPECT_EQ(pch_cache.usage().files, 0u);
  EXPECT_FALSE(fs::exists(scratch_.path("a")));
  EXPECT_NE(pch_cache.try_begin_write(key(1)), nullptr);
  struct stat status;
  ASSERT_EQ(stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(PchCacheTest, FindsPublishedEntryInAnotherProcess) {
  PchCache pch_cache = open();
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  const auto found = pch_cache.find(key(1));
  ASSERT_TRUE(found.has_value());
  const Pch expected = described("content");
  EXPECT_EQ(found->path, path(1, ".pch"));
  EXPECT_EQ(found->size, expected.size);
  EXPECT_EQ(found->checksum, expected.checksum);
  EXPECT_EQ(found->dependency_set, expected.dependency_set);
  EXPECT_EQ(encode(found->observations), encode(expected.observations));
  EXPECT_EQ(read_text(found->path), "content");
  EXPECT_EQ(count(".tmp"), 0);
  EXPECT_FALSE(pch_cache.find(key(2)).has_value());
  const Forked other([&](const Forked::Side& side) { side.say(open().find(key(1)) ? "found" : "not found"); });
  EXPECT_EQ(other.line(), "found");
}

TEST_F(PchCacheTest, OnlyTheFirstRemovalReturnsTrue) {
  PchCache pch_cache = open();
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  EXPECT_TRUE(pch_cache.remove(key(1)));
  EXPECT_FALSE(pch_cache.remove(key(1)));
}

TEST_F(PchCacheTest, EntryThatIsBeingReplacedIsNotRemovedOrReported) {
  PchCache pch_cache = open();
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  const auto writer = pch_cache.try_begin_write(key(1));
  ASSERT_NE(writer, nullptr);
  EXPECT_FALSE(pch_cache.remove(key(1)));
  EXPECT_TRUE(pch_cache.find(key(1)).has_value());
  std::filesystem::resize_file(path(1, ".pch"), 1);
  std::string corruption;
  EXPECT_FALSE(pch_cache.find(key(1), &corruption).has_value());
  EXPECT_EQ(corruption, "");
}

TEST_F(PchCacheTest, ReplacesExistingEntry) {
  PchCache pch_cache = open();
  ASSERT_TRUE(make(pch_cache, 1, "old"));
  ASSERT_TRUE(make(pch_cache, 1, "new content"));
  const auto found = pch_cache.find(key(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(read_text(found->path), "new content");
  EXPECT_EQ(found->checksum, described("new content").checksum);
}

TEST_F(PchCacheTest, RemovesUnpublishedFiles) {
  PchCache pch_cache = open();
  {
    const auto making = pch_cache.try_begin_write(key(1));
    ASSERT_NE(making, nullptr);
    write_text(making->path(), "half");
    EXPECT_EQ(pch_cache.usage().bytes, 4u);
  }
  EXPECT_EQ(pch_cache.usage().files, 0u);
  EXPECT_FALSE(pch_cache.find(key(1)).has_value());
  EXPECT_TRUE(make(pch_cache, 1, "content"));
}

TEST_F(PchCacheTest, RejectsFileOfWrongSize) {
  PchCache pch_cache = open();
  ASSERT_TRUE(make(pch_cache, 1, "old"));
  const auto making = pch_cache.try_begin_write(key(1));
  ASSERT_NE(making, nullptr);
  EXPECT_FALSE(making->publish(described("content")).has_value());
  write_text(making->path(), "conten");
  EXPECT_EQ(making->publish(described("content")).error().code, Code::Corrupt);
  EXPECT_TRUE(pch_cache.find(key(1)).has_value()) << "the old entry is still valid";
  write_text(making->path(), "content");
  EXPECT_TRUE(making->publish(described("content")).has_value());
  EXPECT_FALSE(making->publish(described("content")).has_value()) << "it is already published";
  EXPECT_TRUE(pch_cache.find(key(1)).has_value());
}

TEST_F(PchCacheTest, OneWriterPerKeyInProcess) {
  PchCache pch_cache = open();
  PchCache another = open();
  auto making = pch_cache.try_begin_write(key(1));
  ASSERT_NE(making, nullptr);
  EXPECT_EQ(pch_cache.try_begin_write(key(1)), nullptr);
  EXPECT_EQ(another.try_begin_write(key(1)), nullptr);
  EXPECT_NE(another.try_begin_write(key(2)), nullptr);
  making.reset();
  EXPECT_NE(another.try_begin_write(key(1)), nullptr);
}

TEST_F(PchCacheTest, OneWriterPerKeyAcrossProcesses) {
  PchCache pch_cache = open();
  const Forked other([&](const Forked::Side& side) {
    PchCache its = open();
    auto making = its.try_begin_write(key(1));
    write_text(making->path(), "content");
    side.say("makes");
    (void)side.receive();
    side.say(making->publish(described("content")).has_value() ? "published" : "failed");
    making.reset();
    side.say("done");
    (void)side.receive();
  });
  ASSERT_EQ(other.line(), "makes");
  EXPECT_EQ(pch_cache.try_begin_write(key(1)), nullptr);
  EXPECT_NE(pch_cache.try_begin_write(key(2)), nullptr);
  EXPECT_EQ(count(".tmp"), 1) << "a file in creation is not removed as stale";
  pch_cache.clear();
  EXPECT_EQ(count(".tmp"), 1) << "nor by clear()";
  other.say("go on");
  ASSERT_EQ(other.line(), "published");
  ASSERT_EQ(other.line(), "done");
  EXPECT_TRUE(pch_cache.find(key(1)).has_value());
  EXPECT_NE(pch_cache.try_begin_write(key(1)), nullptr);
}

TEST_F(PchCacheTest, TemporaryNamesAreNotReused) {
  PchCache pch_cache = open();
  const std::string first = pch_cache.try_begin_write(key(1))->path();
  EXPECT_NE(pch_cache.try_begin_write(key(1))->path(), first);
}

TEST_F(PchCacheTest, ConcurrentBeginHasOneWinner) {
  for (int round = 0; round < 30; ++round) {
    const auto race = [&](const Forked::Side& side) {
      PchCache its = open();
      side.say("ready");
      (void)side.receive();
      const auto making = its.try_begin_write(key(round));
      if (making != nullptr) write_text(making->path(), "x");
      side.say(making != nullptr ? "mine" : "not mine");
      (void)side.receive();
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

TEST_F(PchCacheTest, ForkedChildCannotPublishForParent) {
  PchCache pch_cache = open();
  auto making = pch_cache.try_begin_write(key(1));
  ASSERT_NE(making, nullptr);
  write_text(making->path(), "content");
  Forked child([&](const Forked::Side& side) {
    side.say(pch_cache.try_begin_write(key(1)) == nullptr ? "not mine" : "mine");
    side.say(making->publish(described("content")).has_value() ? "published" : "refused");
    making.reset();
    side.say(pch_cache.try_begin_write(key(1)) == nullptr ? "not mine" : "mine");
    side.say(make(pch_cache, 2, "its own") ? "made" : "failed");
  });
  EXPECT_EQ(child.line(), "not mine");
  EXPECT_EQ(child.line(), "refused");
  EXPECT_EQ(child.line(), "not mine");
  EXPECT_EQ(child.line(), "made");
  ASSERT_EQ(child.exit_code(), 0);
  EXPECT_TRUE(making->publish(described("content")).has_value());
  EXPECT_TRUE(pch_cache.find(key(1)).has_value());
  EXPECT_TRUE(pch_cache.find(key(2)).has_value());
}

TEST_F(PchCacheTest, RemovesCorruptEntries) {
  PchCache pch_cache = open();
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  const std::string good = read_text(path(1, ".kpch"));
  std::string flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);
  const std::vector<std::string> bad = {
      "", "K", flipped, good.substr(0, good.size() - 1), good + "x", encode_pch(key(2), "here", described("content"))};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    ASSERT_TRUE(make(pch_cache, 1, "content"));
    write_text(path(1, ".kpch"), bad[i]);
    SCOPED_TRACE(i);
    expect_not_found_and_removed(pch_cache, 1);
  }
}

TEST_F(PchCacheTest, RemovesLargeFileOfWrongSize) {
  PchCache pch_cache = open();
  for (const std::string content : {"conten", "content and more", ""}) {
    ASSERT_TRUE(make(pch_cache, 1, "content"));
    write_text(path(1, ".pch"), content);
    expect_not_found_and_removed(pch_cache, 1);
  }
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  fs::remove(path(1, ".pch"));
  expect_not_found_and_removed(pch_cache, 1);
}

TEST_F(PchCacheTest, RemovesEntriesOfOtherHosts) {
  PchCache there = open(1 << 20, "a-host-of-some-name");
  ASSERT_TRUE(make(there, 1, "content"));
  EXPECT_EQ(read_text(path(1, ".kpch")).find("a-host-of-some-name"), std::string::npos);
  PchCache here = open();
  expect_not_found_and_removed(here, 1);
}

TEST_F(PchCacheTest, RecognizesThisMachine) {
  PchCache pch_cache = open(1 << 20, "");
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  EXPECT_TRUE(open(1 << 20, "").find(key(1)).has_value());
  EXPECT_FALSE(open().find(key(1)).has_value());
}

TEST_F(PchCacheTest, KeepsCorruptEntryWhileItIsReplaced) {
  PchCache pch_cache = open();
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  write_text(path(1, ".kpch"), "damaged");
  const auto making = pch_cache.try_begin_write(key(1));
  EXPECT_FALSE(pch_cache.find(key(1)).has_value());
  EXPECT_TRUE(fs::exists(path(1, ".pch")));
  (void)pch_cache.remove(key(1));
  EXPECT_TRUE(fs::exists(path(1, ".pch")));
  write_text(making->path(), "content");
  EXPECT_TRUE(making->publish(described("content")).has_value());
  EXPECT_TRUE(pch_cache.find(key(1)).has_value());
}

TEST_F(PchCacheTest, IsEmptyInUnusableDirectory) {
  const auto expect_nothing = [](const std::string& directory) {
    PchCache pch_cache({.directory = directory, .host = "here"});
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(pch_cache.find(key(1)).has_value()) << directory;
      EXPECT_FALSE(pch_cache.requested_before(key(1))) << directory;
      EXPECT_EQ(pch_cache.try_begin_write(key(1)), nullptr) << directory;
    }
    (void)pch_cache.remove(key(1));
    pch_cache.clear();
    EXPECT_EQ(pch_cache.usage().files, 0u) << directory;
  };
  write_text(scratch_.path("file"), "x");
  fs::create_directory(scratch_.path("open"));
  fs::permissions(scratch_.path("open"), fs::perms::all);
  write_text(scratch_.path("open/") + key(1).hex() + ".pch", "content");
  write_text(scratch_.path("open/") + key(1).hex() + ".kpch", encode_pch(key(1), "here", described("content")));
  expect_nothing("");
  expect_nothing(scratch_.path("file"));
  expect_nothing(scratch_.path("file/below"));
  expect_nothing(scratch_.path("open"));
  EXPECT_TRUE(fs::exists(scratch_.path("open/") + key(1).hex() + ".pch"));
}

TEST_F(PchCacheTest, SurvivesRemovalOfItsDirectory) {
  PchCache pch_cache = open();
  const auto making = pch_cache.try_begin_write(key(1));
  write_text(making->path(), "content");
  fs::remove_all(directory_);
  EXPECT_FALSE(making->publish(described("content")).has_value());
  EXPECT_TRUE(make(pch_cache, 2, "content"));
  EXPECT_TRUE(pch_cache.find(key(2)).has_value());
}

TEST_F(PchCacheTest, IsThreadSafe) {
  PchCache pch_cache = open(3000);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int turn = 0; turn < 40; ++turn) {
        const int number = (t + turn) % 5;
        (void)make(pch_cache, number, std::string(500 + static_cast<std::size_t>(number), 'x'));
        const auto found = pch_cache.find(key(number));
        if (found && found->size != 500u + static_cast<unsigned>(number)) ++wrong;
        if (turn % 10 == 9) (void)pch_cache.remove(key(number));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(count(".tmp"), 0);
  ASSERT_TRUE(make(pch_cache, 9, "content"));  // no other thread prevents the eviction now
  EXPECT_LE(pch_cache.usage().bytes, 3000u);
}

}  // namespace
}  // namespace kiln::test
