// SPDX-License-Identifier: Apache-2.0
#include "base/files/beneath.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

class Beneath : public testing::TestWithParam<Resolution> {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(room_.path("root/a/b"));
    std::filesystem::create_directories(room_.path("outside/b"));
    write_text(room_.path("root/a/b/file"), "inside");
    write_text(room_.path("outside/b/file"), "outside");
    root_ = Fd(open(room_.path("root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(static_cast<bool>(root_));
  }
  Fd open_file(const char* path) const { return open_beneath(root_.get(), path, O_RDONLY, GetParam()); }
  Fd make(const char* path, mode_t mode) const { return make_directory_beneath(root_.get(), path, mode, GetParam()); }
  void link(const std::string& target, const std::string& name) const {
    std::filesystem::create_symlink(target, room_.path("root/" + name));
  }
  static mode_t mode_of(int fd) {
    struct stat status {};
    EXPECT_EQ(fstat(fd, &status), 0);
    return status.st_mode & 07777;
  }

  TemporaryDirectory room_;
  Fd root_;
};

INSTANTIATE_TEST_SUITE_P(By, Beneath, testing::Values(Resolution::Kernel, Resolution::Walk), [](const auto& instance) {
  return std::string(instance.param == Resolution::Kernel ? "Kernel" : "Walk");
});

TEST_P(Beneath, OpensFilesAndReportsMissing) {
  const Fd file = open_file("a/b/file");
  ASSERT_TRUE(static_cast<bool>(file));
  EXPECT_EQ(read_all(file.get(), 6, "file")->view(), "inside");
  EXPECT_FALSE(open_file("a/b/none"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(open_file("a/none/file"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(open_file("a/b/file/below"));
  EXPECT_EQ(errno, ENOTDIR);
}

TEST_P(Beneath, FollowsNoLinks) {
  link(room_.path("outside"), "away");
  link("a", "near");
  link(room_.path("outside/b/file"), "a/b/link");
  for (const char* path : {"away/b/file", "near/b/file", "a/b/link"}) {
    EXPECT_FALSE(open_file(path)) << path;
    EXPECT_EQ(errno, ELOOP) << path;
  }
  for (const char* path : {"away", "away/b", "near/b"}) {
    EXPECT_FALSE(open_directory_beneath(root_.get(), path, GetParam())) << path;
    EXPECT_EQ(errno, ELOOP) << path;
    EXPECT_FALSE(make(path, 0777)) << path;
    EXPECT_EQ(errno, ELOOP) << path;
  }
  EXPECT_FALSE(make("away/new", 0777));
  EXPECT_FALSE(exists(room_.path("outside/new")));
}

TEST_P(Beneath, NeverLeavesDirectory) {
  EXPECT_FALSE(open_file("../outside/b/file"));
  EXPECT_FALSE(open_file("a/../../outside/b/file"));
  EXPECT_FALSE(open_file(room_.path("outside/b/file").c_str()));
  EXPECT_FALSE(make("../new", 0777));
  EXPECT_FALSE(exists(room_.path("new")));
}

TEST_P(Beneath, CreatesDirectoriesWithExactMode) {
  const mode_t before = umask(077);
  const Fd made = make("new/below", 02775);
  umask(before);
  ASSERT_TRUE(static_cast<bool>(made));
  EXPECT_EQ(mode_of(made.get()), 02775u);
  EXPECT_EQ(mode_of(make("new", 0700).get()), 02775u) << "the mode of an existing directory changed";
}

TEST_P(Beneath, RemovesRegularFilesOnly) {
  link(room_.path("outside/b/file"), "a/b/link");
  ASSERT_EQ(mkfifo(room_.path("root/a/b/pipe").c_str(), 0600), 0);
  const Fd directory = open_directory_beneath(root_.get(), "a/b", GetParam());
  for (const char* name : {"link", "pipe", "."}) {
    EXPECT_FALSE(remove_file_in(directory.get(), name)) << name;
    EXPECT_EQ(errno, EINVAL) << name;
  }
  EXPECT_TRUE(remove_file_in(directory.get(), "file"));
  EXPECT_FALSE(remove_file_in(directory.get(), "file"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_TRUE(exists(room_.path("outside/b/file")));
}

TEST_P(Beneath, RemovesContentsWithoutFollowingLinks) {
  link(room_.path("outside"), "a/link");
  const Fd directory = open_beneath(root_.get(), "a", O_RDONLY | O_DIRECTORY, GetParam());
  remove_contents(directory.get());
  EXPECT_TRUE(std::filesystem::is_empty(room_.path("root/a")));
  EXPECT_TRUE(exists(room_.path("outside/b/file")));
}

}  // namespace
}  // namespace kiln::test
