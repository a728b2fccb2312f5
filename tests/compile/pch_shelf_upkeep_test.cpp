// What the shelf does to stay small and whole; and the form of its small files.
#include <gtest/gtest.h>

#include "compile/pch_shelf.hpp"
#include "pch_shelf_fixture.hpp"
#include "support/forked.hpp"

namespace kiln::test {
namespace {

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

TEST_F(PchShelfTest, RefusesWhatPassesTheBoundAlone) {
  PchShelf shelf = open(10);
  ASSERT_TRUE(make(shelf, 1, "content"));
  EXPECT_FALSE(make(shelf, 2, "far more content"));
  EXPECT_TRUE(shelf.find(key(1)).has_value()) << "what is refused takes nobody's place";
  EXPECT_EQ(shelf.usage().files, 2u);
}

TEST_F(PchShelfTest, SaysWhatIsDamagedAndNothingWhereNothingIs) {
  PchShelf shelf = open();
  std::string damage;
  EXPECT_FALSE(shelf.find(key(1), &damage).has_value());
  EXPECT_EQ(damage, "");
  ASSERT_TRUE(make(shelf, 1, "content"));
  EXPECT_TRUE(shelf.find(key(1), &damage).has_value());
  EXPECT_EQ(damage, "");
  fs::remove(path(1, ".pch"));
  EXPECT_FALSE(shelf.find(key(1), &damage).has_value());
  EXPECT_NE(damage.find("gone"), std::string::npos) << damage;
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
