// SPDX-License-Identifier: Apache-2.0
#include "base/codec.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "base/hash.hpp"

namespace kiln::test {
namespace {

std::string sample() {
  BinaryWriter out;
  out.u8(1).u16(0x1234).u32(0xdeadbeef).u64(0x0102030405060708).f64(-2.5).text("text").digest(sha256("d"));
  return std::move(out).bytes();
}

TEST(Codec, RoundTripsInLittleEndian) {
  const std::string bytes = sample();
  EXPECT_EQ(bytes.substr(1, 2), "\x34\x12");
  BinaryReader in(bytes);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.u16(), 0x1234);
  EXPECT_EQ(in.u32(), 0xdeadbeef);
  EXPECT_EQ(in.u64(), 0x0102030405060708u);
  EXPECT_EQ(in.f64(), -2.5);
  EXPECT_EQ(in.text(), "text");
  EXPECT_EQ(in.digest(), sha256("d"));
  EXPECT_TRUE(in.at_end());
}

TEST(Reader, StaysFailedAfterTruncation) {
  const std::string bytes = sample();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly that length, so that the address sanitizer detects a read past the end.
    const std::vector<std::uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    BinaryReader in{std::span<const std::uint8_t>(cut)};
    (void)in.u8(), (void)in.u16(), (void)in.u32(), (void)in.u64(), (void)in.f64(), (void)in.text(), (void)in.digest();
    EXPECT_FALSE(in.ok()) << length;
    EXPECT_FALSE(in.at_end());
    EXPECT_EQ(in.u64(), 0u);
    EXPECT_EQ(in.text(), "");
  }
}

TEST(Reader, IsNotDoneWithTrailingBytes) {
  BinaryReader in(std::string_view("ab"));
  (void)in.u8();
  EXPECT_TRUE(in.ok());
  EXPECT_FALSE(in.at_end());
  EXPECT_EQ(in.left(), 1u);
}

TEST(Reader, RejectsImpossibleLengthsAndCounts) {
  BinaryWriter out;
  out.u32(0xffffffff).u32(0);
  BinaryReader text(out.bytes());
  EXPECT_EQ(text.text(), "");
  EXPECT_FALSE(text.ok());
  BinaryReader count(out.bytes());
  EXPECT_EQ(count.count(1), 0u);
  EXPECT_FALSE(count.ok());
  BinaryWriter fair;
  fair.u32(2).u32(7).u32(8);
  EXPECT_EQ(BinaryReader(fair.bytes()).count(4), 2u);
  BinaryReader greedy(fair.bytes());
  EXPECT_EQ(greedy.count(5), 0u);
  EXPECT_FALSE(greedy.ok());
}

}  // namespace
}  // namespace kiln::test
