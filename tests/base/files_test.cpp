// SPDX-License-Identifier: Apache-2.0
#include "base/files/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/files/replace_file.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {
namespace {

TEST(ReadFile, ReturnsContentOrNothingIfMissing) {
  const TemporaryDirectory directory;
  write_text(directory.path("a"), std::string("x\0y", 3));
  const auto read = read_file(directory.path("a"));
  ASSERT_TRUE(read.has_value() && read->has_value());
  EXPECT_EQ((*read)->view(), std::string_view("x\0y", 3));
  EXPECT_FALSE(read_file(directory.path("none")).value().has_value());
  EXPECT_FALSE(read_file(directory.path("a/below")).value().has_value());
}

TEST(ReadFile, RejectsNonFilesAndDoesNotBlockOnFifo) {
  const TemporaryDirectory directory;
  ASSERT_EQ(mkfifo(directory.path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(directory.path("fifo")).has_value());
  EXPECT_FALSE(read_file(directory.path()).has_value());
  EXPECT_FALSE(stamp_of(directory.path("fifo").c_str()).has_value());
}

TEST(PublishFile, ReplacesFileAtomically) {
  const TemporaryDirectory directory;
  const std::string name = directory.path("entry");
  const std::string one(100'000, '1');
  const std::string two(150'000, '2');
  write_text(name, one);
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!stop) {
      const auto read = read_file(name);
      if (!read.has_value() || !read->has_value() || ((*read)->view() != one && (*read)->view() != two)) ++torn;
    }
  });
  for (int i = 0; i < 200; ++i) {
    const std::string& text = i % 2 == 0 ? two : one;
    const auto half = static_cast<std::size_t>(text.size() / 2);
    EXPECT_TRUE(publish_file(AT_FDCWD, name + ".tmp", name,
                             {std::string_view(text).substr(0, half), std::string_view(text).substr(half)},
                             i % 20 == 0 ? Durability::Synced : Durability::Unsynced)
                    .has_value());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(files_below(directory.path()), std::vector<std::string>{name});
}

TEST(PublishFile, KeepsOldFileOnFailure) {
  const TemporaryDirectory directory;
  write_text(directory.path("entry"), "old");
  EXPECT_FALSE(
      publish_file(AT_FDCWD, directory.path("none/tmp"), directory.path("entry"), {"new"}, Durability::Unsynced)
          .has_value());
  std::filesystem::create_directories(directory.path("folder/inside"));
  EXPECT_FALSE(publish_file(AT_FDCWD, directory.path("tmp"), directory.path("folder"), {"new"}, Durability::Unsynced)
                   .has_value());
  EXPECT_FALSE(std::filesystem::exists(directory.path("tmp")));
  EXPECT_EQ(read_text(directory.path("entry")), "old");
}

TEST(ReplaceFile, RemovesOnlyStaleTemporaryFiles) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  const std::string left = ".out.0123456789abcdef";
  const std::string young = ".out.fedcba9876543210";
  const std::string others[] = {".other.0123456789abcdef", "out.0123456789abcdef", ".out.backup",
                                ".out.0123456789ABCDEF"};  // not names of temporary files of kiln
  for (const std::string& name : {left, young}) write_text(directory.path(name), "half");
  for (const std::string& name : others) write_text(directory.path(name), "whole");
  const timespec old[2] = {{0, UTIME_OMIT}, {1'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, directory.path(left).c_str(), old, 0), 0);
  for (const std::string& name : others) ASSERT_EQ(utimensat(AT_FDCWD, directory.path(name).c_str(), old, 0), 0);
  ASSERT_TRUE(replace_file(path, "whole", Durability::Unsynced).has_value());
  EXPECT_EQ(read_text(path), "whole");
  EXPECT_FALSE(exists(directory.path(left)));
  EXPECT_TRUE(exists(directory.path(young)));
  for (const std::string& name : others) EXPECT_TRUE(exists(directory.path(name))) << name;
  EXPECT_EQ(files_below(directory.path()).size(), 6U);
}

TEST(TrustedDirectory, RejectsDirectoryWritableByOthers) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(open_trusted_directory(directory.path()).has_value());
  for (const mode_t mode : {0770, 0707, 0777}) {
    chmod(directory.path().c_str(), mode);
    const auto opened = open_trusted_directory(directory.path());
    ASSERT_FALSE(opened.has_value()) << std::oct << mode;
    EXPECT_EQ(opened.error().code, Code::Denied);
  }
  chmod(directory.path().c_str(), 0755);
  EXPECT_TRUE(open_trusted_directory(directory.path()).has_value());
}

TEST(TrustedDirectory, RejectsFilesFifosAndMissingPaths) {
  const TemporaryDirectory directory;
  write_text(directory.path("file"), "");
  ASSERT_EQ(mkfifo(directory.path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(open_trusted_directory(directory.path("file")).error().code, Code::Denied);
  EXPECT_EQ(open_trusted_directory(directory.path("fifo")).error().code, Code::Denied);
  EXPECT_EQ(open_trusted_directory(directory.path("none")).error().code, Code::Unavailable);
}

TEST(TrustedDirectory, RejectsOtherOwnersUnlessTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change the owner of directories";
  const TemporaryDirectory directory;
  ASSERT_EQ(chown(directory.path().c_str(), 12345, 12345), 0);
  EXPECT_EQ(open_trusted_directory(directory.path()).error().code, Code::Denied);
  EXPECT_TRUE(open_trusted_directory(directory.path(), {12345}).has_value());
  const TemporaryDirectory other;
  std::filesystem::create_directory(other.path("mine"));
  std::filesystem::create_symlink(other.path("mine"), other.path("link"));
  EXPECT_TRUE(open_trusted_directory(other.path("link")).has_value());
  ASSERT_EQ(lchown(other.path("link").c_str(), 12345, 12345), 0);
  EXPECT_EQ(open_trusted_directory(other.path("link")).error().code, Code::Denied);
}

TEST(MakeDirectories, CreatesPrivateAndKeepsExisting) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(make_directories(directory.path("a/b/c")).has_value());
  EXPECT_TRUE(make_directories(directory.path("a/b/c")).has_value());
  struct stat status;
  ASSERT_EQ(stat(directory.path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  write_text(directory.path("file"), "");
  EXPECT_FALSE(make_directories(directory.path("file/below")).has_value());
}

class HostLocalDirectory : public testing::Test {
 protected:
  const TemporaryDirectory directory_;
  const ScopedEnv runtime_{"XDG_RUNTIME_DIR", directory_.path().c_str()};
};

TEST_F(HostLocalDirectory, IsPrivateAndRejectedIfOthersCanWrite) {
  EXPECT_EQ(host_local_directory().value(), directory_.path("kiln"));
  struct stat status;
  ASSERT_EQ(stat(directory_.path("kiln").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  chmod(directory_.path("kiln").c_str(), 0777);
  EXPECT_FALSE(host_local_directory().has_value());
}

// In a container, a directory for all users can lack the sticky bit.
TEST_F(HostLocalDirectory, IsMadeInAnyParent) {
  chmod(directory_.path().c_str(), 0777);
  EXPECT_EQ(host_local_directory().value(), directory_.path("kiln"));
  EXPECT_EQ(host_local_directory().value(), directory_.path("kiln")) << "it exists now";
}

TEST_F(HostLocalDirectory, IsNotBelowADirectoryOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change the owner of directories";
  const std::string own = "/tmp/kiln-0";
  EXPECT_EQ(host_local_path(), directory_.path("kiln"));
  ASSERT_EQ(chown(directory_.path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(host_local_path(), own);
  std::filesystem::create_directory(directory_.path("target"));
  std::filesystem::create_directory_symlink(directory_.path("target"), directory_.path("link"));
  const ScopedEnv linked("XDG_RUNTIME_DIR", directory_.path("link").c_str());
  EXPECT_EQ(host_local_path(), directory_.path("link/kiln")) << "a link of root to a directory of root";
  ASSERT_EQ(lchown(directory_.path("link").c_str(), 65534, 65534), 0);
  EXPECT_EQ(host_local_path(), own);
}

TEST(PrivateDirectory, IsNotMadeWhereOthersCanReplaceItAndFollowsNoLink) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path("open"));
  chmod(directory.path("open").c_str(), 0777);
  EXPECT_FALSE(make_private_directory(directory.path("open/private")).has_value());
  EXPECT_FALSE(exists(directory.path("open/private")));
  chmod(directory.path("open").c_str(), 01777);
  EXPECT_TRUE(make_private_directory(directory.path("open/private")).has_value());
  std::filesystem::create_directory_symlink(directory.path("open/private"), directory.path("link"));
  EXPECT_FALSE(make_private_directory(directory.path("link")).has_value());
}

TEST(FileStamp, DetectsRewriteAndRecentChange) {
  const TemporaryDirectory directory;
  write_text(directory.path("a"), "1");
  const auto first = stamp_of(directory.path("a").c_str());
  ASSERT_TRUE(first.has_value());
  write_text(directory.path("a"), "22");
  EXPECT_FALSE(*first == *stamp_of(directory.path("a").c_str()));
  const std::chrono::nanoseconds changed(std::max(first->modified_ns, first->changed_ns));
  using std::chrono::seconds;
  EXPECT_TRUE(first->is_newer_than(seconds(2), changed + seconds(1)));
  EXPECT_TRUE(first->is_newer_than(seconds(2), changed - seconds(1)));  // from the future
  EXPECT_FALSE(first->is_newer_than(seconds(2), changed + seconds(3)));
}

TEST(JoinPath, AddsOneSlashAndKeepsAbsoluteNames) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
}

}  // namespace
}  // namespace kiln::test
