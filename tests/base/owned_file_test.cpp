// SPDX-License-Identifier: Apache-2.0
#include "base/files/owned_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

Code code_of_open(const std::string& path) {
  const Result<OwnedFile> file = open_owned_file(path, FileUse::Obeyed);
  return file ? Code::Internal : file.error().code;
}

class OwnedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(directory_.path("a/b"));
    write_text(file_, "text");
    ASSERT_EQ(chmod(file_.c_str(), 0644), 0);
  }

  const TemporaryDirectory directory_;
  const std::string file_ = directory_.path("a/b/file");
};

TEST_F(OwnedFileTest, OpensFileByEquivalentPaths) {
  fs::create_directory_symlink("b", directory_.path("a/relative"));
  fs::create_directory_symlink(directory_.path("a"), directory_.path("absolute"));
  fs::create_symlink("../absolute/relative/file", directory_.path("a/link"));
  for (const std::string& path : {file_, directory_.path("a//./b/../b/file"), directory_.path("absolute/link"),
                                  directory_.path("a/relative/file")}) {
    const Result<OwnedFile> file = open_owned_file(path, FileUse::Obeyed);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(file->size, 4U);
    EXPECT_EQ(read_all(file->fd.get(), file->size, path)->view(), "text");
  }
  const std::string here = fs::current_path();
  fs::current_path(directory_.path("a"));
  EXPECT_TRUE(open_owned_file("b/file", FileUse::Obeyed).has_value());
  EXPECT_TRUE(open_owned_file("../absolute/b/file", FileUse::Obeyed).has_value());
  fs::current_path(here);
}

TEST_F(OwnedFileTest, RejectsNonFilesAndReportsMissing) {
  EXPECT_EQ(code_of_open(directory_.path("none")), Code::Unavailable);
  EXPECT_EQ(code_of_open(directory_.path("none/none")), Code::Unavailable);
  EXPECT_EQ(code_of_open(file_ + "/below"), Code::Unavailable);
  EXPECT_EQ(code_of_open(""), Code::Unavailable);
  EXPECT_EQ(code_of_open(directory_.path("a")), Code::Denied);
  EXPECT_EQ(code_of_open("/"), Code::Denied);
  ASSERT_EQ(mkfifo(directory_.path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(code_of_open(directory_.path("fifo")), Code::Denied);
  fs::create_symlink(directory_.path("loop"), directory_.path("loop"));
  EXPECT_EQ(code_of_open(directory_.path("loop")), Code::Denied);
}

TEST_F(OwnedFileTest, RejectsFilesWritableByOthersWithFixCommand) {
  ASSERT_EQ(chmod(file_.c_str(), 0664), 0);
  const Result<OwnedFile> file = open_owned_file(file_, FileUse::Obeyed);
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, Code::Denied);
  EXPECT_NE(file.error().message.find("chmod go-w '" + file_ + "'"), std::string::npos) << file.error().message;
  ASSERT_EQ(chmod(file_.c_str(), 0644), 0);
  ASSERT_EQ(chmod(directory_.path("a").c_str(), 0775), 0);
  const Result<OwnedFile> below = open_owned_file(file_, FileUse::Obeyed);
  ASSERT_FALSE(below.has_value());
  EXPECT_NE(below.error().message.find("chmod go-w '" + directory_.path("a") + "'"), std::string::npos)
      << below.error().message;
  ASSERT_EQ(chmod(directory_.path("a").c_str(), 0755), 0);
  EXPECT_TRUE(open_owned_file(file_, FileUse::Obeyed).has_value());
}

TEST_F(OwnedFileTest, SecretMustBePrivate) {
  for (const mode_t mode : {0644U, 0640U, 0604U, 0610U, 0622U}) {
    ASSERT_EQ(chmod(file_.c_str(), mode), 0);
    const Result<OwnedFile> file = open_owned_file(file_, FileUse::Secret);
    ASSERT_FALSE(file.has_value()) << mode;
    EXPECT_NE(file.error().message.find("chmod 600 '" + file_ + "'"), std::string::npos) << file.error().message;
  }
  for (const mode_t mode : {0600U, 0400U}) {
    ASSERT_EQ(chmod(file_.c_str(), mode), 0);
    EXPECT_TRUE(open_owned_file(file_, FileUse::Secret).has_value()) << mode;
  }
}

TEST_F(OwnedFileTest, ChecksDirectoriesAndTheirPaths) {
  const std::string directory = directory_.path("a/b");
  fs::create_directory_symlink(directory, directory_.path("link"));
  EXPECT_TRUE(check_owned_directory(directory).has_value());
  EXPECT_EQ(check_owned_directory(directory + "/none").error().code, Code::Unavailable);
  EXPECT_EQ(check_owned_directory(file_).error().code, Code::Unavailable);
  for (const std::string& writable : {directory, directory_.path("a")}) {
    ASSERT_EQ(chmod(writable.c_str(), 0775), 0);
    for (const std::string& path : {directory, directory + "/none", directory_.path("link")}) {
      const Status checked = check_owned_directory(path);
      ASSERT_FALSE(checked.has_value()) << path;
      EXPECT_EQ(checked.error().code, Code::Denied);
      EXPECT_NE(checked.error().message.find("chmod go-w '" + writable + "'"), std::string::npos);
    }
    ASSERT_EQ(chmod(writable.c_str(), 0755), 0);
  }
}

}  // namespace
}  // namespace kiln::test
