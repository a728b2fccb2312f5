// SPDX-License-Identifier: Apache-2.0
#include "cache/entry_format.hpp"

#include <gtest/gtest.h>

#include "cache/hint_format.hpp"
#include "cache/store.hpp"
#include "support/fixtures/artifacts.hpp"

namespace kiln::test {
namespace {

std::string file_of(const ArtifactKey& key, const Artifact& artifact) {
  return encode_entry_header(key, artifact) + std::string(artifact.bytes.view());
}

bool rejected(const ArtifactKey& key, std::string file) {
  const auto decoded = decode_entry(key, Bytes::of(std::move(file)));
  return !decoded && decoded.error().code == Code::Corrupt;
}

TEST(EntryFormat, DecodesWithoutCopyingPayload) {
  const Artifact artifact = artifact_of(key_number(1), 1'000);
  const Bytes file = Bytes::of(file_of(key_number(1), artifact));
  const auto decoded = decode_entry(key_number(1), file);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_TRUE(same(*decoded, artifact));
  EXPECT_GE(decoded->bytes.data(), file.data());
  EXPECT_EQ(decoded->bytes.end(), file.end());
}

TEST(EntryFormat, PayloadIsAlignedForAnyMetadata) {
  Artifact artifact = artifact_of(key_number(1), 10);
  for (int i = 0; i < 20; ++i, artifact.metadata.log += "x") {
    EXPECT_EQ(encode_entry_header(key_number(1), artifact).size() % 16, 0u);
    EXPECT_FALSE(rejected(key_number(1), file_of(key_number(1), artifact)));
  }
}

TEST(EntryFormat, HeaderAloneHasKeyCostAndSizes) {
  const Artifact artifact = artifact_of(key_number(1), 1'000, 1234.5);
  const std::string head = encode_entry_header(key_number(1), artifact).substr(0, EntryHeader::kSize);
  const auto header = decode_entry_header(as_bytes(head));
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->key, key_number(1));
  EXPECT_EQ(header->cost_ms, 1234.5);
  EXPECT_EQ(header->payload_size, 1'000u);
  EXPECT_EQ(header->file_size(), file_of(key_number(1), artifact).size());
}

TEST(EntryFormat, RejectsCostMismatchBetweenHeaderAndMetadata) {
  const std::string file = file_of(key_number(1), artifact_of(key_number(1), 100, 5.0));
  auto header = decode_entry_header(as_bytes(file));
  ASSERT_TRUE(header.has_value());
  header->cost_ms = 6.0;
  const auto decoded = decode_entry_metadata(*header, as_bytes(file));
  ASSERT_FALSE(decoded.has_value());
  EXPECT_NE(decoded.error().message.find("cost in the metadata"), std::string::npos) << decoded.error().message;
}

TEST(EntryFormat, RejectsEntryOfAnotherKey) {
  EXPECT_TRUE(rejected(key_number(2), file_of(key_number(1), artifact_of(key_number(1), 100))));
}

TEST(EntryFormat, RejectsAnotherVersionWithItsNumber) {
  std::string file = file_of(key_number(1), artifact_of(key_number(1), 100));
  file[8] = 2;
  const auto decoded = decode_entry(key_number(1), Bytes::of(file));
  ASSERT_FALSE(decoded.has_value());
  EXPECT_NE(decoded.error().message.find("version 2"), std::string::npos) << decoded.error().message;
}

TEST(EntryFormat, DetectsEveryFlippedBit) {
  const std::string file = file_of(key_number(1), artifact_of(key_number(1), 600));
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string corrupt = file;
    corrupt[bit / 8] = static_cast<char>(corrupt[bit / 8] ^ (1 << bit % 8));
    ASSERT_TRUE(rejected(key_number(1), std::move(corrupt))) << "bit " << bit;
  }
}

TEST(EntryFormat, DetectsEveryTruncationAndExtension) {
  const std::string file = file_of(key_number(1), artifact_of(key_number(1), 600));
  for (std::size_t size = 0; size < file.size(); ++size) {
    ASSERT_TRUE(rejected(key_number(1), file.substr(0, size))) << "truncated to " << size;
  }
  EXPECT_TRUE(rejected(key_number(1), file + '\0'));
}

TEST(HintFormat, DetectsHeaderCorruptionAndIsolatesSlotCorruption) {
  const std::vector<std::string_view> dependency_sets = {"the newest closure", "an older one"};
  const std::string file = encode_hints(request_number(1), dependency_sets);
  const auto head = decode_hint_head(request_number(1), as_bytes(file));
  ASSERT_TRUE(head.has_value());
  ASSERT_EQ(head->slots.size(), 2u);
  EXPECT_EQ(head->file_size(), file.size());
  EXPECT_EQ(hint_at(head->slots[0], as_bytes(file)), dependency_sets[0]);
  EXPECT_EQ(hint_at(head->slots[1], as_bytes(file)), dependency_sets[1]);
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string corrupt = file;
    corrupt[bit / 8] = static_cast<char>(corrupt[bit / 8] ^ (1 << bit % 8));
    const auto found = decode_hint_head(request_number(1), as_bytes(corrupt));
    ASSERT_EQ(found.has_value(), bit / 8 >= head->slots[0].offset) << "bit " << bit;
    if (!found) continue;
    const bool in_first = bit / 8 < head->slots[1].offset;
    EXPECT_EQ(hint_at(found->slots[0], as_bytes(corrupt)), in_first ? "" : dependency_sets[0]);
    EXPECT_EQ(hint_at(found->slots[1], as_bytes(corrupt)), in_first ? dependency_sets[1] : "");
  }
  EXPECT_FALSE(decode_hint_head(request_number(2), as_bytes(file)).has_value());
}

TEST(HintFormat, FirstSlotNeedsOnlyBeginningOfFile) {
  const std::vector<std::string_view> dependency_sets = {"the newest closure", "an older one"};
  const std::string file = encode_hints(request_number(1), dependency_sets);
  const std::string beginning = file.substr(0, file.size() - dependency_sets[1].size());
  const auto head = decode_hint_head(request_number(1), as_bytes(beginning));
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(hint_at(head->slots[0], as_bytes(beginning)), dependency_sets[0]);
  EXPECT_EQ(hint_at(head->slots[1], as_bytes(beginning)), "");
}

}  // namespace
}  // namespace kiln::test
