// SPDX-License-Identifier: Apache-2.0
// Eviction and cleanup of the cache of precompiled headers, and the format of its small files.
#include <gtest/gtest.h>

#include "base/process/system_info.hpp"
#include "pch_cache_fixture.hpp"
#include "support/processes/forked.hpp"
#include "worker/pch_cache.hpp"

namespace kiln::test {
namespace {

TEST_F(PchCacheTest, RemovesFilesOfKilledWriter) {
  Forked maker([&](const Forked::Side& side) {
    PchCache its = open();
    const auto making = its.try_begin_write(key(1));
    write_text(making->path(), "half");
    side.say("makes");
    (void)side.receive();
  });
  ASSERT_EQ(maker.line(), "makes");
  maker.kill_now();
  ASSERT_EQ(count(".tmp"), 1);
  PchCache pch_cache = open();
  EXPECT_NE(pch_cache.try_begin_write(key(2)), nullptr);
  EXPECT_EQ(count(".tmp"), 0);
  EXPECT_TRUE(make(pch_cache, 1, "content"));
}

TEST_F(PchCacheTest, RemovesIncompletePairsOnly) {
  {
    PchCache pch_cache = open();
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE(make(pch_cache, i, "content"));
  }
  fs::remove(path(1, ".kpch"));
  fs::remove(path(2, ".pch"));
  write_text(directory_ + "/readme.pch", "not ours");
  write_text(directory_ + "/" + key(4).hex() + "tmp", "not ours");
  PchCache pch_cache = open();
  ASSERT_NE(pch_cache.try_begin_write(key(9)), nullptr);
  EXPECT_FALSE(fs::exists(path(1, ".pch")));
  EXPECT_FALSE(fs::exists(path(2, ".kpch")));
  EXPECT_TRUE(pch_cache.find(key(3)).has_value());
  EXPECT_TRUE(fs::exists(directory_ + "/readme.pch"));
  EXPECT_TRUE(fs::exists(directory_ + "/" + key(4).hex() + "tmp"));
}

TEST_F(PchCacheTest, EvictsLeastRecentlyUsed) {
  const std::string content(1000, 'x');
  const std::uint64_t pair = content.size() + encode_pch(key(1), "here", described(content)).size();
  PchCache pch_cache = open(3 * pair);
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(make(pch_cache, i, content));
  EXPECT_TRUE(pch_cache.find(key(1)).has_value());
  ASSERT_TRUE(make(pch_cache, 4, content));
  EXPECT_FALSE(pch_cache.find(key(2)).has_value()) << "it is the least recently used one";
  EXPECT_FALSE(fs::exists(path(2, ".pch")));
  for (const int kept : {1, 3, 4}) EXPECT_TRUE(pch_cache.find(key(kept)).has_value()) << kept;
  EXPECT_EQ(pch_cache.usage().bytes, 3 * pair);
}

// Each header that is being created counts as the largest, because its size is known only when it is written.
TEST_F(PchCacheTest, InMemoryRunningCreationsAreBounded) {
  if (available_memory() / kFreeMemoryParts < kMinPchMemory) GTEST_SKIP() << "too little memory is available";
  const auto open_in_memory = [&](std::uint64_t bound) {
    return make_pch_cache({directory_, bound, "here", PchCache::Options::Storage::Memory});
  };
  const auto one = open_in_memory(2 * kLargestPch + 100);
  const auto other = open_in_memory(2 * kLargestPch + 100);  // like that of another process
  ASSERT_TRUE(make(*one, 1, std::string(1000, 'x')));
  auto first = one->try_begin_write(key(2));
  ASSERT_TRUE(first->reserve());
  EXPECT_TRUE(one->find(key(1)).has_value());
  const auto second = other->try_begin_write(key(3));
  EXPECT_TRUE(second->reserve());
  EXPECT_FALSE(one->find(key(1)).has_value()) << "evicted to make room";
  EXPECT_FALSE(one->try_begin_write(key(4))->reserve());
  EXPECT_EQ(count(".tmp"), 2);
  first.reset();
  write_text(path(6, ".1-1.tmp"), "of a process that was killed");
  EXPECT_TRUE(one->try_begin_write(key(4))->reserve());
  EXPECT_FALSE(open_in_memory(kLargestPch - 1)->try_begin_write(key(5))->reserve());
}

TEST_F(PchCacheTest, NewestEntryIsNotEvicted) {
  PchCache pch_cache = open(10);
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  ASSERT_TRUE(make(pch_cache, 2, "content"));
  EXPECT_FALSE(pch_cache.find(key(1)).has_value());
  EXPECT_TRUE(pch_cache.find(key(2)).has_value());
}

TEST_F(PchCacheTest, RejectsFileLargerThanLimit) {
  PchCache pch_cache = open(10);
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  EXPECT_FALSE(make(pch_cache, 2, "far more content"));
  EXPECT_TRUE(pch_cache.find(key(1)).has_value()) << "a rejected file evicts nothing";
  EXPECT_EQ(pch_cache.usage().files, 2u);
}

TEST_F(PchCacheTest, ReportsCorruptionOnlyForCorruptEntries) {
  PchCache pch_cache = open();
  std::string corruption;
  EXPECT_FALSE(pch_cache.find(key(1), &corruption).has_value());
  EXPECT_EQ(corruption, "");
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  EXPECT_TRUE(pch_cache.find(key(1), &corruption).has_value());
  EXPECT_EQ(corruption, "");
  fs::remove(path(1, ".pch"));
  EXPECT_FALSE(pch_cache.find(key(1), &corruption).has_value());
  EXPECT_NE(corruption.find("missing"), std::string::npos) << corruption;
}

TEST_F(PchCacheTest, DoesNotEvictEntryThatIsBeingReplaced) {
  PchCache pch_cache = open(10);
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  const auto making = pch_cache.try_begin_write(key(1));
  ASSERT_TRUE(make(pch_cache, 2, "content"));
  EXPECT_TRUE(pch_cache.find(key(1)).has_value());
}

TEST_F(PchCacheTest, RequestMarkersLastAMonth) {
  PchCache pch_cache = open();
  EXPECT_FALSE(pch_cache.requested_before(key(1)));
  EXPECT_TRUE(pch_cache.requested_before(key(1)));
  EXPECT_FALSE(pch_cache.requested_before(key(2)));
  const Forked other([&](const Forked::Side& side) { side.say(open().requested_before(key(1)) ? "before" : "never"); });
  EXPECT_EQ(other.line(), "before");
  EXPECT_EQ(pch_cache.usage().files, 0u);
  age(path(1, ".asked"), std::chrono::hours(31 * 24));
  age(path(2, ".asked"), std::chrono::hours(29 * 24));
  ASSERT_NE(pch_cache.try_begin_write(key(3)), nullptr);
  EXPECT_FALSE(pch_cache.requested_before(key(1)));
  EXPECT_TRUE(pch_cache.requested_before(key(2)));
}

TEST_F(PchCacheTest, KeepsLimitedNumberOfNewestRequestMarkers) {
  fs::create_directories(directory_);
  fs::permissions(directory_, fs::perms::owner_all);
  for (int i = 0; i < 4100; ++i) write_text(path(i, ".asked"), "");
  for (int i = 0; i < 4; ++i) age(path(i, ".asked"), std::chrono::hours(1));
  PchCache pch_cache = open();
  ASSERT_NE(pch_cache.try_begin_write(key(0)), nullptr);
  EXPECT_EQ(count(".asked"), 4096);
  EXPECT_FALSE(pch_cache.requested_before(key(3)));
  EXPECT_TRUE(pch_cache.requested_before(key(4)));
}

TEST_F(PchCacheTest, ClearRemovesEverythingButLockFile) {
  PchCache pch_cache = open();
  ASSERT_TRUE(make(pch_cache, 1, "content"));
  ASSERT_TRUE(make(pch_cache, 2, "content"));
  (void)pch_cache.requested_before(key(3));
  EXPECT_EQ(pch_cache.usage().files, 4u);
  EXPECT_GT(pch_cache.usage().bytes, 14u);
  (void)pch_cache.remove(key(1));
  EXPECT_FALSE(pch_cache.find(key(1)).has_value());
  EXPECT_EQ(pch_cache.usage().files, 2u);
  pch_cache.clear();
  EXPECT_EQ(pch_cache.usage().files, 0u);
  EXPECT_EQ(pch_cache.usage().bytes, 0u);
  EXPECT_FALSE(pch_cache.requested_before(key(3)));
  EXPECT_TRUE(fs::exists(directory_ + "/locks"));
}

TEST(PchFormat, RoundTrips) {
  const std::string bytes = encode_pch(key(1), "here", described("content"));
  const auto read = decode_pch(bytes, key(1), "here");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(encode_pch(key(1), "here", *read), bytes);
  EXPECT_EQ(read->log, described("content").log);
}

TEST(PchFormat, RejectsTooLongLog) {
  Pch pch = described("content");
  pch.log = std::string(Pch::kMaxLogBytes, 'x');
  EXPECT_TRUE(decode_pch(encode_pch(key(1), "here", pch), key(1), "here").has_value());
  pch.log += 'x';
  EXPECT_FALSE(decode_pch(encode_pch(key(1), "here", pch), key(1), "here").has_value());
}

TEST(PchFormat, RejectsOtherVersionKeyOrHost) {
  const std::string bytes = encode_pch(key(1), "here", described("content"));
  std::string newer = bytes;
  newer[8] = 5;
  const auto rejection = [](const Result<Pch>& result) {
    if (result.has_value()) return std::string("taken");
    EXPECT_EQ(result.error().code, Code::Corrupt);
    return result.error().message;
  };
  EXPECT_NE(rejection(decode_pch(newer, key(1), "here")).find("version 5"), std::string::npos);
  EXPECT_NE(rejection(decode_pch(bytes, key(2), "here")).find("another key"), std::string::npos);
  EXPECT_NE(rejection(decode_pch(bytes, key(1), "there")).find("another host"), std::string::npos);
}

TEST(PchFormat, RejectsTruncationsAndFlippedBits) {
  const std::string bytes = encode_pch(key(1), "here", described("content"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(decode_pch(bytes.substr(0, size), key(1), "here").has_value()) << size;
  }
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string corrupt = bytes;
    corrupt[bit / 8] = static_cast<char>(corrupt[bit / 8] ^ (1 << bit % 8));
    ASSERT_FALSE(decode_pch(corrupt, key(1), "here").has_value()) << bit;
  }
}

}  // namespace
}  // namespace kiln::test
