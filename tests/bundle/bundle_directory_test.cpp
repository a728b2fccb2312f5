// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "bundle/bundle_source.hpp"
#include "support/fixtures/bundle_parts.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using test::read_pieces;
using test::write_text;

class BundleDirectory : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(path_);
    write_text(path_ + "/head", image_.head);
    for (std::size_t i = 0; i < image_.groups.size(); ++i)
      write_text(path_ + "/group-000" + std::to_string(i), image_.groups[i]);
  }
  void expect_rejected(const std::string& words) const {
    const auto source = open_bundle_source(path_);
    ASSERT_TRUE(source.has_value());
    const Result<BundleImage> result = read_pieces(**source, image_);
    ASSERT_FALSE(result.has_value()) << "expected: " << words;
    EXPECT_EQ(result.error().code, Code::Corrupt);
    EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
  }

  const BundleImage image_ = test::pieces(2, 100, 50);
  const test::TemporaryDirectory directory_;
  const std::string path_ = directory_.path("kiln");
};

TEST_F(BundleDirectory, OpensByOwnPathAndByParentPath) {
  for (const std::string& path : {path_, directory_.path()}) {
    const auto source = open_bundle_source(path);
    ASSERT_TRUE(source.has_value()) << source.error().message;
    const Result<BundleImage> back = read_pieces(**source, image_);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_TRUE(back->to_file() == image_.to_file());
    EXPECT_EQ((*source)->describe(), path_);
  }
}

TEST_F(BundleDirectory, FollowsLinks) {
  fs::rename(path_ + "/group-0001", directory_.path("elsewhere"));
  fs::create_symlink(directory_.path("elsewhere"), path_ + "/group-0001");
  const auto source = open_bundle_source(path_);
  ASSERT_TRUE(source.has_value());
  EXPECT_TRUE(read_pieces(**source, image_).has_value());
}

TEST_F(BundleDirectory, KeepsReadingFilesThatAreReplaced) {
  const auto source = open_bundle_source(path_);
  ASSERT_TRUE(source.has_value());
  ASSERT_TRUE(read_pieces(**source, image_).has_value());
  const BundleGroup group{1, 0, image_.groups[1].size()};
  for (const bool is_there : {true, false}) {
    fs::remove(path_ + "/group-0001");
    if (is_there) write_text(path_ + "/group-0001", std::string(image_.groups[1].size(), 'x'));
    std::vector<std::uint8_t> bytes(group.size);
    ASSERT_TRUE((*source)->read_group(group, 0, bytes).has_value());
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), image_.groups[1]);
  }
}

TEST_F(BundleDirectory, RejectsMissingWrongAndExtraFiles) {
  write_text(path_ + "/group-0003", "");
  expect_rejected("group-0003 is not part of the bundle");
  fs::remove(path_ + "/group-0003");
  write_text(path_ + "/group-0002", "short");
  expect_rejected("group-0002 has 5 bytes");
  fs::remove(path_ + "/group-0002");
  expect_rejected("group-0002 is missing");
  ASSERT_EQ(mkfifo((path_ + "/group-0002").c_str(), 0600), 0);
  expect_rejected("group-0002 is not a regular file");
}

TEST(BundleSource, ReportsExpectedFilesIfThereIsNoBundle) {
  const test::TemporaryDirectory directory;
  const auto nothing = open_bundle_source(directory.path("nothing"));
  ASSERT_FALSE(nothing.has_value());
  EXPECT_EQ(nothing.error().code, Code::Unavailable);
  const auto empty = open_bundle_source(directory.path());
  ASSERT_FALSE(empty.has_value());
  EXPECT_NE(empty.error().message.find("kiln/head"), std::string::npos) << empty.error().message;
}

}  // namespace
}  // namespace kiln
