#include "base/codec.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "base/hash.hpp"

namespace kiln::test {
namespace {

std::string sample() {
  Writer out;
  out.u8(1).u16(0x1234).u32(0xdeadbeef).u64(0x0102030405060708).f64(-2.5).text("text").digest(sha256("d"));
  return std::move(out).bytes();
}

TEST(Codec, ReadsBackWhatItWroteInLittleEndian) {
  const std::string bytes = sample();
  EXPECT_EQ(bytes.substr(1, 2), "\x34\x12");
  Reader in(bytes);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.u16(), 0x1234);
  EXPECT_EQ(in.u32(), 0xdeadbeef);
  EXPECT_EQ(in.u64(), 0x0102030405060708u);
  EXPECT_EQ(in.f64(), -2.5);
  EXPECT_EQ(in.text(), "text");
  EXPECT_EQ(in.digest(), sha256("d"));
  EXPECT_TRUE(in.done());
}

TEST(Reader, FailsOnceAndStaysFailedWhereverTheBytesEnd) {
  const std::string bytes = sample();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly that length, so that the address sanitizer sees a read beyond it.
    const std::vector<std::uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    Reader in{std::span<const std::uint8_t>(cut)};
    (void)in.u8(), (void)in.u16(), (void)in.u32(), (void)in.u64(), (void)in.f64(), (void)in.text(), (void)in.digest();
    EXPECT_FALSE(in.ok()) << length;
    EXPECT_FALSE(in.done());
    EXPECT_EQ(in.u64(), 0u);
    EXPECT_EQ(in.text(), "");
  }
}

TEST(Reader, IsNotDoneWhileSomethingIsLeft) {
  Reader in(std::string_view("ab"));
  (void)in.u8();
  EXPECT_TRUE(in.ok());
  EXPECT_FALSE(in.done());
  EXPECT_EQ(in.left(), 1u);
}

TEST(Reader, RefusesLengthsAndCountsThatCannotBeTrue) {
  Writer out;
  out.u32(0xffffffff).u32(0);
  Reader text(out.bytes());
  EXPECT_EQ(text.text(), "");
  EXPECT_FALSE(text.ok());
  Reader count(out.bytes());
  EXPECT_EQ(count.count(1), 0u);
  EXPECT_FALSE(count.ok());
  Writer fair;
  fair.u32(2).u32(7).u32(8);
  EXPECT_EQ(Reader(fair.bytes()).count(4), 2u);
  Reader greedy(fair.bytes());
  EXPECT_EQ(greedy.count(5), 0u);
  EXPECT_FALSE(greedy.ok());
}

}  // namespace
}  // namespace kiln::test
