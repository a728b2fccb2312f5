#include "base/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/replace_file.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

TEST(ReadFile, GivesTheWholeFileOrNothingWhereThereIsNone) {
  const TemporaryDirectory folder;
  spit(folder.path("a"), std::string("x\0y", 3));
  const auto read = read_file(folder.path("a"));
  ASSERT_TRUE(read.ok() && read->has_value());
  EXPECT_EQ((*read)->view(), std::string_view("x\0y", 3));
  EXPECT_FALSE(read_file(folder.path("none")).value().has_value());
  EXPECT_FALSE(read_file(folder.path("a/below")).value().has_value());
}

TEST(ReadFile, RefusesWhatIsNoFileAndNeverHangsOnAFifo) {
  const TemporaryDirectory folder;
  ASSERT_EQ(mkfifo(folder.path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(folder.path("fifo")).ok());
  EXPECT_FALSE(read_file(folder.path()).ok());
  EXPECT_FALSE(stamp_of(folder.path("fifo").c_str()).has_value());
}

TEST(PublishFile, ReplacesAFileInOneStepForReaders) {
  const TemporaryDirectory folder;
  const std::string name = folder.path("entry");
  const std::string one(100'000, '1');
  const std::string two(150'000, '2');
  spit(name, one);
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!stop) {
      const auto read = read_file(name);
      if (!read.ok() || !read->has_value() || ((*read)->view() != one && (*read)->view() != two)) ++torn;
    }
  });
  for (int i = 0; i < 200; ++i) {
    const std::string& text = i % 2 == 0 ? two : one;
    const auto half = static_cast<std::size_t>(text.size() / 2);
    EXPECT_TRUE(publish_file(AT_FDCWD, name + ".tmp", name,
                             {std::string_view(text).substr(0, half), std::string_view(text).substr(half)},
                             i % 20 == 0 ? Durability::Synced : Durability::Unsynced)
                    .ok());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(files_below(folder.path()), std::vector<std::string>{name});
}

TEST(PublishFile, LeavesTheOldFileAndNoTemporaryWhereItCannot) {
  const TemporaryDirectory folder;
  spit(folder.path("entry"), "old");
  EXPECT_FALSE(
      publish_file(AT_FDCWD, folder.path("none/tmp"), folder.path("entry"), {"new"}, Durability::Unsynced).ok());
  std::filesystem::create_directories(folder.path("folder/inside"));
  EXPECT_FALSE(publish_file(AT_FDCWD, folder.path("tmp"), folder.path("folder"), {"new"}, Durability::Unsynced).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.path("tmp")));
  EXPECT_EQ(slurp(folder.path("entry")), "old");
}

TEST(ReplaceFile, RemovesWhatKilledWritersLeftAnHourAgoAndNothingElse) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("out");
  for (const char* name : {".out.old", ".out.young", ".other.old", "out.old"}) spit(directory.path(name), "half");
  const timespec old[2] = {{0, UTIME_OMIT}, {1'000'000, 0}};
  for (const char* name : {".out.old", ".other.old", "out.old"}) {
    ASSERT_EQ(utimensat(AT_FDCWD, directory.path(name).c_str(), old, 0), 0);
  }
  ASSERT_TRUE(replace_file(path, "whole", Durability::Unsynced).ok());
  EXPECT_EQ(slurp(path), "whole");
  EXPECT_FALSE(exists(directory.path(".out.old")));
  for (const char* name : {".out.young", ".other.old", "out.old"}) EXPECT_TRUE(exists(directory.path(name))) << name;
  EXPECT_EQ(files_below(directory.path()).size(), 4U);
}

TEST(TrustedDirectory, IsOneThatNobodyElseCanWriteTo) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(open_trusted_directory(folder.path()).ok());
  for (const mode_t mode : {0770, 0707, 0777}) {
    chmod(folder.path().c_str(), mode);
    const auto opened = open_trusted_directory(folder.path());
    ASSERT_FALSE(opened.ok()) << std::oct << mode;
    EXPECT_EQ(opened.error().code, Code::Refused);
  }
  chmod(folder.path().c_str(), 0755);
  EXPECT_TRUE(open_trusted_directory(folder.path()).ok());
}

TEST(TrustedDirectory, IsNoFileNoFifoAndNotMissing) {
  const TemporaryDirectory folder;
  spit(folder.path("file"), "");
  ASSERT_EQ(mkfifo(folder.path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(open_trusted_directory(folder.path("file")).error().code, Code::Refused);
  EXPECT_EQ(open_trusted_directory(folder.path("fifo")).error().code, Code::Refused);
  EXPECT_EQ(open_trusted_directory(folder.path("none")).error().code, Code::Unavailable);
}

TEST(TrustedDirectory, OfAnotherUserIsRefusedUnlessThatUserIsTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give folders away";
  const TemporaryDirectory folder;
  ASSERT_EQ(chown(folder.path().c_str(), 12345, 12345), 0);
  EXPECT_EQ(open_trusted_directory(folder.path()).error().code, Code::Refused);
  EXPECT_TRUE(open_trusted_directory(folder.path(), {12345}).ok());
  const TemporaryDirectory other;
  std::filesystem::create_directory(other.path("mine"));
  std::filesystem::create_symlink(other.path("mine"), other.path("link"));
  EXPECT_TRUE(open_trusted_directory(other.path("link")).ok());
  ASSERT_EQ(lchown(other.path("link").c_str(), 12345, 12345), 0);
  EXPECT_EQ(open_trusted_directory(other.path("link")).error().code, Code::Refused);
}

TEST(MakeDirectories, MakesThemPrivateAndMindsThoseThatAreThere) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(make_directories(folder.path("a/b/c")).ok());
  EXPECT_TRUE(make_directories(folder.path("a/b/c")).ok());
  struct stat status;
  ASSERT_EQ(stat(folder.path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  spit(folder.path("file"), "");
  EXPECT_FALSE(make_directories(folder.path("file/below")).ok());
}

TEST(HostLocalDirectory, IsPrivateUnderTheRuntimeFolderAndRefusedWhenOpenToOthers) {
  const TemporaryDirectory folder;
  const char* before = std::getenv("XDG_RUNTIME_DIR");
  const std::string saved = before != nullptr ? before : "";
  setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
  EXPECT_EQ(host_local_directory().value(), folder.path("kiln"));
  chmod(folder.path("kiln").c_str(), 0777);
  EXPECT_FALSE(host_local_directory().ok());
  before != nullptr ? setenv("XDG_RUNTIME_DIR", saved.c_str(), 1) : unsetenv("XDG_RUNTIME_DIR");
}

TEST(FileStamp, ShowsARewriteAndIsYoungUntilItsAgeHasPassed) {
  const TemporaryDirectory folder;
  spit(folder.path("a"), "1");
  const auto first = stamp_of(folder.path("a").c_str());
  ASSERT_TRUE(first.has_value());
  spit(folder.path("a"), "22");
  EXPECT_FALSE(*first == *stamp_of(folder.path("a").c_str()));
  const std::chrono::nanoseconds changed(std::max(first->modified_ns, first->changed_ns));
  using std::chrono::seconds;
  EXPECT_TRUE(first->younger_than(seconds(2), changed + seconds(1)));
  EXPECT_TRUE(first->younger_than(seconds(2), changed - seconds(1)));  // from the future
  EXPECT_FALSE(first->younger_than(seconds(2), changed + seconds(3)));
}

TEST(JoinPath, PutsOneSlashBetweenAndMindsAbsoluteNames) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
}

}  // namespace
}  // namespace kiln::test
