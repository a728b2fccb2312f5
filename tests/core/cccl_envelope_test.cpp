// SPDX-License-Identifier: Apache-2.0
#include "core/cccl_envelope.hpp"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/codec.hpp"
#include "base/hash.hpp"
#include "support/processes/sanitizer.hpp"

namespace kiln::test {
namespace {

CcclEnvelope envelope_around(std::string_view blob) {
  return {cccl::exclusive_scan<std::int32_t>().text(), "1.2.1", "0123456789abcdef", 90, {"scan_init", "scan"}, blob};
}

bool rejected(std::string_view bytes) {
  const auto decoded = decode_cccl_envelope(bytes);
  return !decoded && decoded.error().code == Code::Corrupt;
}

/// Returns the bytes with a correct checksum, as a forger could write them.
std::string sealed(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  return bytes + BinaryWriter().u64(xxh3(as_bytes(bytes))).bytes();
}

TEST(CcclEnvelope, RoundTripsWithoutCopyingBlob) {
  for (const std::size_t size : {0, 1, 15, 16, 17, 1000}) {
    const std::string blob(size, 'b');
    const CcclEnvelope envelope = envelope_around(blob);
    const std::string bytes = encode(envelope);
    const auto decoded = decode_cccl_envelope(bytes);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(decoded->spec, envelope.spec);
    EXPECT_EQ(decoded->release, envelope.release);
    EXPECT_EQ(decoded->build_id, envelope.build_id);
    EXPECT_EQ(decoded->capability, 90);
    EXPECT_EQ(decoded->kernels, envelope.kernels);
    EXPECT_EQ(decoded->blob, blob);
    EXPECT_EQ((decoded->blob.data() - bytes.data()) % 16, 0) << "the library reads numbers in place";
  }
}

TEST(CcclEnvelope, RejectsAnyBitFlip) {
  const std::string bytes = encode(envelope_around("a small blob of no algorithm"));
  ASSERT_FALSE(rejected(bytes));
  for (std::size_t bit = 0; bit != bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(rejected(flipped)) << "bit " << bit;
  }
}

TEST(CcclEnvelope, RejectsTruncatedOrExtended) {
  const std::string bytes = encode(envelope_around("a small blob of no algorithm"));
  for (std::size_t size = 0; size != bytes.size(); ++size) EXPECT_TRUE(rejected(bytes.substr(0, size))) << size;
  EXPECT_TRUE(rejected(bytes + '\0'));
  EXPECT_TRUE(rejected(bytes + bytes));
}

TEST(CcclEnvelope, RejectsRandomCorruptionAtRealSize) {
  std::mt19937 random(6);
  std::string blob(300'000, '\0');
  for (char& c : blob) c = static_cast<char>(random());
  const std::string whole = encode(envelope_around(blob));
  std::string bytes = whole;
  for (int i = 0; i != (kShadowMemory ? 500 : 20'000); ++i) {
    const std::size_t at = random() % whole.size();
    switch (i % 8) {
      case 0: EXPECT_TRUE(rejected(std::string_view(whole).substr(0, at))) << "cut at " << at; break;
      case 1: EXPECT_TRUE(rejected(whole + blob.substr(0, 1 + random() % 64))) << "lengthened"; break;
      default: {
        const char before = bytes[at];
        bytes[at] = static_cast<char>(before ^ (1 + random() % 255));
        EXPECT_TRUE(rejected(bytes)) << "byte " << at;
        bytes[at] = before;
      }
    }
  }
  EXPECT_FALSE(rejected(bytes));
}

TEST(CcclEnvelope, RejectsOtherVersionsWithNumber) {
  for (const char version : {0, 2, 100}) {
    std::string bytes = encode(envelope_around("blob"));
    bytes[8] = version;
    const auto decoded = decode_cccl_envelope(sealed(bytes));
    ASSERT_FALSE(decoded.has_value());
    EXPECT_EQ(decoded.error().code, Code::Corrupt);
    EXPECT_NE(decoded.error().message.find("version " + std::to_string(version)), std::string::npos)
        << decoded.error().message;
  }
}

TEST(CcclEnvelope, RejectsInconsistentFieldsWithValidChecksum) {
  const std::string good = encode(envelope_around("blob"));
  ASSERT_FALSE(rejected(sealed(good)));
  const auto with = [&](std::size_t at, std::uint32_t value) {
    std::string bytes = good;
    bytes.replace(at, 4, BinaryWriter().u32(value).bytes());
    return sealed(bytes);
  };
  const std::size_t spec = cccl::exclusive_scan<std::int32_t>().text().size();
  const std::size_t kernels = 16 + 4 + spec + (4 + 5) + (4 + 16);
  EXPECT_TRUE(rejected(with(12, 0))) << "invalid capability";
  EXPECT_TRUE(rejected(with(12, 1'000'000))) << "invalid capability";
  EXPECT_TRUE(rejected(with(16, 0xffffffff))) << "a spec longer than the envelope";
  EXPECT_TRUE(rejected(with(16, static_cast<std::uint32_t>(spec - 1)))) << "a spec that is too short";
  EXPECT_TRUE(rejected(with(kernels, 0xffffffff))) << "more kernels than bytes";
  EXPECT_TRUE(rejected(with(kernels, 1))) << "fewer kernels than stored";
  std::string padded = good;
  const std::size_t blob = padded.size() - 8 - 4;
  if (padded[blob - 1] == 0) padded[blob - 1] = 1;
  EXPECT_TRUE(rejected(sealed(padded))) << "nonzero padding, or a different size";
}

}  // namespace
}  // namespace kiln::test
