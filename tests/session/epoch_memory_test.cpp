// SPDX-License-Identifier: Apache-2.0
#include "bundle/epoch_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

const Epochs kTwo = {{"acme/toys", 1}, {"acme/vision", 7}};

TEST(EpochFormat, RoundTrips) {
  EXPECT_EQ(decode_epochs(encode_epochs(kTwo)).value(), kTwo);
  EXPECT_TRUE(decode_epochs(encode_epochs({})).value().empty());
}

TEST(EpochFormat, OtherVersionIsRejectedWithItsNumber) {
  std::string file = encode_epochs(kTwo);
  file[8] = 2;
  const auto read = decode_epochs(file);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Code::Unsupported);
  EXPECT_NE(read.error().message.find("version 2"), std::string::npos);
}

TEST(EpochFormat, AnyChangedOrMissingByteIsRejected) {
  const std::string file = encode_epochs(kTwo);
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(decode_epochs(changed).has_value()) << i;
    EXPECT_FALSE(decode_epochs(file.substr(0, i)).has_value()) << i;
  }
  EXPECT_FALSE(decode_epochs(file + '\0').has_value());
}

class EpochMemoryTest : public testing::Test {
 protected:
  EpochMemory memory() { return EpochMemory(file_, log_.emitter()); }

  TemporaryDirectory directory_;
  const std::string file_ = directory_.path("v1/epochs");
  EventLog log_;
};

TEST_F(EpochMemoryTest, OlderEpochIsRejectedInLaterProcesses) {
  EXPECT_TRUE(memory().admit("acme/vision", 7, true).has_value());
  EXPECT_TRUE(memory().admit("acme/vision", 7, true).has_value());
  EXPECT_TRUE(memory().admit("acme/toys", 1, true).has_value());
  const Status older = memory().admit("acme/vision", 6, true);
  ASSERT_FALSE(older.has_value());
  EXPECT_EQ(older.error().code, Code::Denied);
  EXPECT_NE(older.error().message.find("trust.remember_epochs = false"), std::string::npos);
  EXPECT_NE(older.error().message.find(file_), std::string::npos);
  EXPECT_EQ(log_.count(Event::Kind::CacheUnavailable), 0U);
}

TEST_F(EpochMemoryTest, FirstEpochInCacheThatExistsEmitsNothing) {
  std::filesystem::create_directory(directory_.path("v1"));
  EXPECT_TRUE(memory().admit("acme/vision", 7, true).has_value());
  EXPECT_EQ(log_.count(Event::Kind::CacheUnavailable), 0U);
  EXPECT_FALSE(memory().admit("acme/vision", 6, true).has_value());
}

TEST_F(EpochMemoryTest, UnprovenEpochIsComparedButNotRecorded) {
  EXPECT_TRUE(memory().admit("acme/vision", 9, false).has_value());
  EXPECT_TRUE(memory().admit("acme/vision", 7, true).has_value());
  EXPECT_FALSE(memory().admit("acme/vision", 6, false).has_value());
}

TEST_F(EpochMemoryTest, FileIsPrivateToUser) {
  ASSERT_TRUE(memory().admit("acme/vision", 7, true).has_value());
  EXPECT_EQ(std::filesystem::status(file_).permissions(), std::filesystem::perms(0600));
}

TEST_F(EpochMemoryTest, LinkIsNotFollowed) {
  write_text(directory_.path("elsewhere"), encode_epochs({{"acme/vision", 99}}));
  std::filesystem::create_directory(directory_.path("v1"));
  std::filesystem::create_symlink(directory_.path("elsewhere"), file_);
  EXPECT_TRUE(memory().admit("acme/vision", 7, false).has_value());
  EXPECT_EQ(log_.count(Event::Kind::CacheUnavailable), 1U);
}

TEST_F(EpochMemoryTest, UnwritableFileEmitsEventWithoutError) {
  write_text(directory_.path("v1"), "no folder");
  EXPECT_TRUE(memory().admit("acme/vision", 7, true).has_value());
  EXPECT_EQ(log_.count(Event::Kind::CacheUnavailable), 1U);
}

}  // namespace
}  // namespace kiln::test
