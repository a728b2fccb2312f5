// SPDX-License-Identifier: Apache-2.0
#include "base/hash.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kiln::test {
namespace {

TEST(Sha256, MatchesStandardVectors) {
  EXPECT_EQ(sha256("").hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')).hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IncrementalEqualsOneShot) {
  const std::string text(1000, 'x');
  for (std::size_t cut = 0; cut <= text.size(); cut += 37) {
    Sha256 hash;
    hash.add(as_bytes(std::string_view(text).substr(0, cut))).add(as_bytes(std::string_view(text).substr(cut)));
    ASSERT_EQ(hash.finish(), sha256(text)) << cut;
  }
}

TEST(Xxh3, MatchesSpecificationAndCoversEveryBit) {
  EXPECT_EQ(xxh3(as_bytes("")), 0x2d06800538d394c2ULL);
  std::string text(100, 'x');
  const std::uint64_t whole = xxh3(as_bytes(text));
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_NE(xxh3(as_bytes(flipped)), whole) << bit;
  }
}

TEST(Digest, ParsesItsHexOnly) {
  const Digest digest = sha256("abc");
  EXPECT_EQ(Digest::from_hex(digest.hex()), digest);
  EXPECT_FALSE(Digest::from_hex("").has_value());
  EXPECT_FALSE(Digest::from_hex(digest.hex().substr(1)).has_value());
  EXPECT_FALSE(Digest::from_hex(digest.hex() + "0").has_value());
  std::string wrong = digest.hex();
  wrong[10] = 'g';
  EXPECT_FALSE(Digest::from_hex(wrong).has_value());
}

}  // namespace
}  // namespace kiln::test
