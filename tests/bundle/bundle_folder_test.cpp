#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "bundle/bundle_source.hpp"
#include "support/bundle_pieces.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using test::read_pieces;
using test::spit;

class BundleFolder : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(path_);
    spit(path_ + "/head", image_.head);
    for (std::size_t i = 0; i < image_.groups.size(); ++i)
      spit(path_ + "/group-000" + std::to_string(i), image_.groups[i]);
  }
  void expect_refused(const std::string& words) const {
    const auto source = open_bundle_source(path_);
    ASSERT_TRUE(source.ok());
    const Result<BundleImage> result = read_pieces(**source, image_);
    ASSERT_FALSE(result.ok()) << "expected: " << words;
    EXPECT_EQ(result.error().code, Code::Corrupt);
    EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
  }

  const BundleImage image_ = test::pieces(2, 100, 50);
  const test::TemporaryDirectory folder_;
  const std::string path_ = folder_.path("kiln");
};

TEST_F(BundleFolder, IsFoundUnderItsPathAndUnderThatOfItsParent) {
  for (const std::string& path : {path_, folder_.path()}) {
    const auto source = open_bundle_source(path);
    ASSERT_TRUE(source.ok()) << source.error().message;
    const Result<BundleImage> back = read_pieces(**source, image_);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_TRUE(back->whole() == image_.whole());
    EXPECT_EQ((*source)->describe(), path_);
  }
}

TEST_F(BundleFolder, FollowsLinks) {
  fs::rename(path_ + "/group-0001", folder_.path("elsewhere"));
  fs::create_symlink(folder_.path("elsewhere"), path_ + "/group-0001");
  const auto source = open_bundle_source(path_);
  ASSERT_TRUE(source.ok());
  EXPECT_TRUE(read_pieces(**source, image_).ok());
}

TEST_F(BundleFolder, WithAMissingAWrongOrAnExtraFileIsRefused) {
  spit(path_ + "/group-0003", "");
  expect_refused("group-0003 is no part of the bundle");
  fs::remove(path_ + "/group-0003");
  spit(path_ + "/group-0002", "short");
  expect_refused("group-0002 has 5 bytes");
  fs::remove(path_ + "/group-0002");
  expect_refused("group-0002 is missing");
  ASSERT_EQ(mkfifo((path_ + "/group-0002").c_str(), 0600), 0);
  expect_refused("group-0002 is not a regular file");
}

TEST(BundleSource, SaysWhatItExpectedWhereThereIsNone) {
  const test::TemporaryDirectory folder;
  const auto nothing = open_bundle_source(folder.path("nothing"));
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code, Code::Unavailable);
  const auto empty = open_bundle_source(folder.path());
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().message.find("kiln/head"), std::string::npos) << empty.error().message;
}

}  // namespace
}  // namespace kiln
