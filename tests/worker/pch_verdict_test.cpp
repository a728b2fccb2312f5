// SPDX-License-Identifier: Apache-2.0
// Check results of NVRTC libraries: their file format, and how the cache stores them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/clock.hpp"
#include "base/codec.hpp"
#include "pch_cache_fixture.hpp"
#include "worker/pch_check.hpp"

namespace kiln::test {
namespace {

using Kind = PchVerdict::Kind;

PchVerdict verdict_of(Kind kind) { return {kind, "using one: why", std::chrono::nanoseconds(1234)}; }

// Returns the same bytes with a valid checksum.
std::string with_checksum(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  BinaryWriter sum;
  sum.u64(xxh3(as_bytes(bytes)));
  return bytes + sum.bytes();
}

class PchVerdictTest : public PchCacheTest {
 protected:
  bool keep(PchCache& pch_cache, int number, const PchVerdict& verdict) {
    const auto making = pch_cache.try_begin_write(key(number));
    if (making == nullptr) return false;
    write_text(making->path(), "the precompiled header of the check");
    return making->publish(verdict).has_value();
  }
};

TEST_F(PchVerdictTest, RoundTrips) {
  for (const Kind kind : {Kind::Good, Kind::Differs, Kind::Rejected}) {
    const auto read = decode_verdict(encode_verdict(key(1), "here", verdict_of(kind)), key(1), "here");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->kind, kind);
    EXPECT_EQ(read->reason, "using one: why");
    EXPECT_EQ(read->made.count(), 1234);
  }
}

TEST_F(PchVerdictTest, RejectsCorruptOrForeignResult) {
  const std::string good = encode_verdict(key(1), "here", verdict_of(Kind::Good));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode_verdict(bad, key(1), "here").has_value()) << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_verdict(std::string_view(good).substr(0, size), key(1), "here").has_value()) << size;
  }
  EXPECT_FALSE(decode_verdict(good + "x", key(1), "here").has_value());
  EXPECT_FALSE(decode_verdict(good, key(2), "here").has_value());
  EXPECT_FALSE(decode_verdict(good, key(1), "elsewhere").has_value());
}

TEST_F(PchVerdictTest, RejectsUnknownVersionOrKind) {
  const std::string good = encode_verdict(key(1), "here", verdict_of(Kind::Good));
  constexpr std::size_t kVersionAt = 8;
  constexpr std::size_t kKindAt = 8 + 4 + 32 + 32;
  ASSERT_EQ(good[kKindAt], 1);
  ASSERT_TRUE(decode_verdict(with_checksum(good), key(1), "here").has_value());
  for (const std::size_t at : {kVersionAt, kKindAt}) {
    for (const int value : {0, 4, 255}) {
      std::string other = good;
      other[at] = static_cast<char>(value);
      EXPECT_FALSE(decode_verdict(with_checksum(other), key(1), "here").has_value()) << at << ' ' << value;
    }
  }
}

TEST_F(PchVerdictTest, IsStoredSeparatelyFromPrecompiledHeaders) {
  PchCache pch_cache = open();
  EXPECT_FALSE(pch_cache.verdict(key(1)).has_value());
  ASSERT_TRUE(keep(pch_cache, 1, {Kind::Good, {}, system_clock().wall()}));
  ASSERT_TRUE(pch_cache.verdict(key(1)).has_value());
  EXPECT_EQ(pch_cache.verdict(key(1))->kind, Kind::Good);
  EXPECT_FALSE(pch_cache.find(key(1)).has_value());
  EXPECT_EQ(pch_cache.usage().files, 0U);
  EXPECT_EQ(count(".tmp"), 0);
  struct stat status;
  ASSERT_EQ(stat(path(1, ".kpcv").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_FALSE(open(1 << 20, "elsewhere").verdict(key(1)).has_value());
  pch_cache.clear();
  EXPECT_EQ(count(".kpcv"), 0);
}

TEST_F(PchVerdictTest, InvalidFileCountsAsMissing) {
  PchCache pch_cache = open();
  ASSERT_TRUE(keep(pch_cache, 1, {Kind::Good, {}, system_clock().wall()}));
  const std::string file = path(1, ".kpcv");
  const std::string good = read_text(file);
  const auto expect_none = [&](const char* what) { EXPECT_FALSE(pch_cache.verdict(key(1)).has_value()) << what; };
  write_text(file, "");
  expect_none("empty");
  write_text(file, good + std::string(100'000, 'x'));
  expect_none("too large");
  fs::rename(file, scratch_.path("elsewhere"));
  write_text(scratch_.path("elsewhere"), good);
  fs::create_symlink(scratch_.path("elsewhere"), file);
  expect_none("a link");
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  expect_none("a FIFO");
  fs::remove(file);
  write_text(file, good);
  EXPECT_TRUE(pch_cache.verdict(key(1)).has_value());
  fs::permissions(directory_, fs::perms(0777));
  expect_none("in a directory that other users can write to");
}

TEST_F(PchVerdictTest, RejectionExpiresAfterADayAndOthersAfterAMonth) {
  using namespace std::chrono_literals;
  PchCache pch_cache = open();
  const auto now = system_clock().wall();
  ASSERT_TRUE(keep(pch_cache, 1, {Kind::Rejected, "a full disk", now - 23h}));
  EXPECT_TRUE(pch_cache.verdict(key(1)).has_value());
  ASSERT_TRUE(keep(pch_cache, 1, {Kind::Rejected, "a full disk", now - 25h}));
  EXPECT_FALSE(pch_cache.verdict(key(1)).has_value());
  ASSERT_TRUE(keep(pch_cache, 1, {Kind::Rejected, "a full disk", now + 48h}));
  EXPECT_FALSE(pch_cache.verdict(key(1)).has_value()) << "from a clock that was wrong";
  for (const Kind kind : {Kind::Good, Kind::Differs}) {
    ASSERT_TRUE(keep(pch_cache, 1, {kind, "using one", now - 29 * 24h}));
    EXPECT_TRUE(pch_cache.verdict(key(1)).has_value());
    ASSERT_TRUE(keep(pch_cache, 1, {kind, "using one", now - 31 * 24h}));
    EXPECT_FALSE(pch_cache.verdict(key(1)).has_value());
  }
}

TEST_F(PchVerdictTest, IsPublishedWithoutWriterUnlessKeyIsLocked) {
  PchCache pch_cache = open();
  const PchVerdict rejected{Kind::Rejected, "a full disk", system_clock().wall()};
  ASSERT_TRUE(pch_cache.publish_verdict(key(1), rejected).has_value());
  EXPECT_EQ(open().verdict(key(1))->kind, Kind::Rejected);
  EXPECT_EQ(count(".tmp"), 0);
  const auto making = pch_cache.try_begin_write(key(2));
  EXPECT_FALSE(pch_cache.publish_verdict(key(2), rejected).has_value());
}

TEST_F(PchVerdictTest, FailureKeyContainsHeadersAndLimits) {
  const Digest one = pch_failure_key(key(1), 1, 2);
  EXPECT_EQ(one, pch_failure_key(key(1), 1, 2));
  EXPECT_NE(one, pch_failure_key(key(2), 1, 2));
  EXPECT_NE(one, pch_failure_key(key(1), 3, 2));
  EXPECT_NE(one, pch_failure_key(key(1), 1, 3));
}

TEST_F(PchVerdictTest, AnotherLibraryHasAnotherKey) {
  CompilerIdentity one;
  one.digest = sha256("one");
  CompilerIdentity other = one;
  other.path = "/elsewhere/libnvrtc.so";
  EXPECT_EQ(pch_verdict_key(one), pch_verdict_key(other)) << "content counts";
  other.digest = sha256("other");
  EXPECT_NE(pch_verdict_key(one), pch_verdict_key(other));
}

}  // namespace
}  // namespace kiln::test
