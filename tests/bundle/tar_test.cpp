// SPDX-License-Identifier: Apache-2.0
#include "bundle/tar.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/hash.hpp"

namespace kiln {
namespace {

TEST(Tar, AnyChangedHeaderIsRejected) {
  const std::string good = write_tar("kiln/", {{"kiln/head", "some bytes"}}).value();
  const auto files = read_tar(as_bytes(good), "kiln/");
  ASSERT_TRUE(files.has_value());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ(good.substr(files->at(0).offset, files->at(0).size), "some bytes");
  EXPECT_EQ(good.size(), tar_size({10}));
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (at >= 1024 && at < 1034) continue;  // the bytes of the file
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    EXPECT_FALSE(read_tar(as_bytes(bad), "kiln/").has_value()) << at;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(read_tar(as_bytes(std::string_view(good).substr(0, size)), "kiln/").has_value()) << size;
  }
}

TEST(Tar, SizeLimitIsElevenOctalDigits) { EXPECT_EQ(kMaxTarFileBytes, 077'777'777'777U); }

TEST(Tar, RejectsLongNames) {
  EXPECT_TRUE(write_tar("kiln/", {{std::string(100, 'n'), ""}}).has_value());
  EXPECT_FALSE(write_tar("kiln/", {{std::string(101, 'n'), ""}}).has_value());
  EXPECT_FALSE(write_tar("kiln/", {{"", ""}}).has_value());
}

}  // namespace
}  // namespace kiln
