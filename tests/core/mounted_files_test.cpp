// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_digest_cache.hpp"
#include "base/hash.hpp"
#include "core/dependency_set.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/private_mounts.hpp"
#include "support/servers/fuse_server.hpp"

namespace kiln::test {
namespace {

using std::chrono::seconds;

class MountedFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status own = enter_own_mounts();
    if (!own) GTEST_SKIP() << own.error().message;
    chmod(directory_.path().c_str(), 0700);
    for (const char* name : {"one", "two", "mounted"}) std::filesystem::create_directory(directory_.path(name));
    write_text(directory_.path("one/header.h"), "one");
    write_text(directory_.path("two/header.h"), "two");
    clock_.advance(seconds(10));  // makes new files look old
  }

  TemporaryDirectory directory_;
  const std::string place_ = directory_.path("mounted");
  const std::string file_ = place_ + "/header.h";
  const std::string memory_ = directory_.path("memory");
  ManualClock clock_;
};

// The command that creates an image of a directory, and its program. `$1` is the directory, `$2` the image.
struct ImageKind {
  const char* name;
  const char* program;
  const char* command;
  const char* options;
};

void PrintTo(const ImageKind& kind, std::ostream* out) { *out << kind.name; }

class ImageMountTest : public MountedFilesTest, public ::testing::WithParamInterface<ImageKind> {
 protected:
  void SetUp() override {
    MountedFilesTest::SetUp();
    if (IsSkipped()) return;
    if (!run_shell(std::string("command -v ") + GetParam().program)) {
      GTEST_SKIP() << GetParam().program << " is not installed: run tools/setup.sh";
    }
    for (const char* name : {"one", "two"}) {
      ASSERT_TRUE(run_shell("set -- '" + directory_.path(name) + "' '" + image(name) + "'; " + GetParam().command));
    }
    mount_image("one");
    if (!mounted_) GTEST_SKIP() << "this kernel does not mount " << GetParam().name << " from a loop device";
    before_ = stamp_of(file_.c_str());
  }
  static bool has_unique_mount_ids() {
    struct statx found {};
    return statx(AT_FDCWD, "/", 0, 0x4000U, &found) == 0 && (found.stx_mask & 0x4000U) != 0;
  }
  std::string image(const std::string& name) const { return directory_.path(name + ".image"); }
  void mount_image(const std::string& name) {
    mounted_.reset();
    mounted_ = std::make_unique<Mounted>(GetParam().options, image(name), place_);
    if (!*mounted_) mounted_.reset();
  }
  // Mounts another image with the same stat data at the same path. The loop device is the same as soon as it is free.
  void exchange_image() {
    for (int i = 0; i < 50; ++i) {
      mount_image("two");
      if (stamp_of(file_.c_str()) == before_) return;
      mounted_.reset();
      system_clock().sleep(std::chrono::milliseconds(20));
    }
    FAIL() << "the two images have different stamps";
  }

  std::unique_ptr<Mounted> mounted_;
  std::optional<FileStamp> before_;
};

TEST_P(ImageMountTest, RemountedImageIsReadAgainInSameProcess) {
  for (const Mounts::Ids ids : {Mounts::Ids::Unique, Mounts::Ids::None}) {
    mount_image("one");
    before_ = stamp_of(file_.c_str());
    FileDigestCache digests("", FileDigestCache::Options{false, ids}, clock_);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(digests.lookup(file_)->digest, sha256("one"));
    EXPECT_EQ(digests.computed_count(), 1u);
    exchange_image();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(digests.lookup(file_)->digest, sha256("two"));
    EXPECT_EQ(digests.computed_count(), 2u);
  }
}

TEST_P(ImageMountTest, RemountedImageIsReadAgainByNextProcess) {
  {
    FileDigestCache digests(memory_, clock_);
    EXPECT_EQ(digests.lookup(file_)->digest, sha256("one"));
    ASSERT_TRUE(digests.save().has_value());
  }
  exchange_image();
  FileDigestCache digests(memory_, clock_);
  EXPECT_EQ(digests.lookup(file_)->digest, sha256("two"));
}

TEST_P(ImageMountTest, ImageIsReadOnceForAllProcesses) {
  if (!has_unique_mount_ids()) GTEST_SKIP() << "this kernel has no unique mount ids (Linux 6.8 or later has)";
  for (const std::size_t reads : {1u, 0u}) {
    FileDigestCache digests(memory_, clock_);
    EXPECT_EQ(digests.lookup(file_)->digest, sha256("one"));
    EXPECT_EQ(digests.computed_count(), reads);
    ASSERT_TRUE(digests.save().has_value());
  }
}

TEST_P(ImageMountTest, NothingIsSavedWithoutUniqueMountIds) {
  for (int i = 0; i < 2; ++i) {
    FileDigestCache digests(memory_, FileDigestCache::Options{false, Mounts::Ids::None}, clock_);
    EXPECT_EQ(digests.lookup(file_)->digest, sha256("one"));
    EXPECT_EQ(digests.computed_count(), 1u);
    ASSERT_TRUE(digests.save().has_value());
  }
}

// Times as set by reproducible builds. On ext4 the test sets them in the image.
INSTANTIATE_TEST_SUITE_P(
    Kinds, ImageMountTest,
    ::testing::Values(ImageKind{"squashfs", "mksquashfs", "mksquashfs \"$1\" \"$2\" -all-time 0 -mkfs-time 0",
                                "-o loop,ro"},
                      ImageKind{"erofs", "mkfs.erofs", "mkfs.erofs -T0 \"$2\" \"$1\"", "-o loop,ro"},
                      ImageKind{"ext4", "mkfs.ext4",
                                "mkfs.ext4 -q -O ^has_journal -d \"$1\" \"$2\" 1M && for field in ctime mtime; do "
                                "debugfs -w -R \"set_inode_field header.h $field 20200101\" \"$2\" && "
                                "debugfs -w -R \"set_inode_field header.h ${field}_extra 0\" \"$2\"; done",
                                "-o loop"}),
    [](const auto& kind) { return kind.param.name; });

// Containers run on overlays; another container can have other layers at the same path.
TEST_F(MountedFilesTest, OverlayWithOtherLayerIsReadAgain) {
  if (!run_shell("command -v mksquashfs")) GTEST_SKIP() << "mksquashfs is not installed: run tools/setup.sh";
  FileDigestCache digests(memory_, clock_);
  std::filesystem::create_directory(directory_.path("layer"));
  for (const std::string name : {"one", "two"}) {
    ASSERT_TRUE(run_shell("mksquashfs '" + directory_.path(name) + "' '" + directory_.path(name + ".image") +
                          "' -all-time 0 -mkfs-time 0"));
    const Mounted layer("-o loop,ro", directory_.path(name + ".image"), directory_.path("layer"));
    if (!layer) GTEST_SKIP() << "this kernel does not mount squashfs from a loop device";
    const Mounted overlay("-t overlay -o 'lowerdir=" + directory_.path("layer") + ":" + directory_.path("one") + "'",
                          "none", place_);
    if (!overlay) GTEST_SKIP() << "this kernel does not mount overlays";
    EXPECT_EQ(digests.lookup(file_)->digest, sha256(name));
    EXPECT_EQ(digests.lookup(file_)->digest, sha256(name));
  }
  EXPECT_EQ(digests.computed_count(), 2u);
}

class NetworkFilesTest : public MountedFilesTest {
 protected:
  void SetUp() override {
    MountedFilesTest::SetUp();
    if (IsSkipped()) return;
    server_ = std::make_unique<FuseServer>(place_);
    if (!*server_) GTEST_SKIP() << "FUSE is not available here";
    pass(seconds(0));
    server_->write("header.h", "one");
  }
  // Advances the clocks of this host and of the server, which is a minute behind.
  void pass(seconds time) {
    clock_.advance(time);
    server_->set_time(std::chrono::duration_cast<seconds>(clock_.wall()).count() - 60);
  }
  // Makes two edits of the same size within one tick of the server's clock.
  void expect_second_edit_seen(const std::string& path) {
    FileDigestCache digests("", clock_);
    EXPECT_EQ(digests.lookup(path)->digest, sha256("one"));
    server_->write("header.h", "two");
    EXPECT_EQ(digests.lookup(path)->digest, sha256("two"));
  }

  std::unique_ptr<FuseServer> server_;
};

TEST_F(NetworkFilesTest, SecondEditIsSeenByAbsolutePath) { expect_second_edit_seen(file_); }

TEST_F(NetworkFilesTest, SecondEditIsSeenThroughSymlink) {
  std::filesystem::create_symlink(file_, directory_.path("one/link.h"));
  expect_second_edit_seen(directory_.path("one/link.h"));
}

TEST_F(NetworkFilesTest, SecondEditIsSeenByNextProcess) {
  {
    FileDigestCache digests(memory_, clock_);
    EXPECT_EQ(digests.lookup(file_)->digest, sha256("one"));
    (void)digests.save();
  }
  server_->write("header.h", "two");
  FileDigestCache digests(memory_, clock_);
  EXPECT_EQ(digests.lookup(file_)->digest, sha256("two"));
}

TEST_F(NetworkFilesTest, DigestIsCachedTwoSecondsAfterFirstCheck) {
  FileDigestCache digests("", clock_);
  for (const std::size_t reads : {1u, 2u}) {  // the second read is not trusted yet
    EXPECT_EQ(digests.lookup(file_)->digest, sha256("one"));
    EXPECT_EQ(digests.computed_count(), reads);
  }
  pass(seconds(3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(digests.lookup(file_)->digest, sha256("one"));
  EXPECT_EQ(digests.computed_count(), 3u);
  server_->write("header.h", "two");
  EXPECT_EQ(digests.lookup(file_)->digest, sha256("two"));
}

TEST_F(NetworkFilesTest, FirstCheckTimeIsSharedBetweenProcesses) {
  std::vector<std::size_t> reads;
  for (int i = 0; i < 4; ++i) {
    FileDigestCache digests(memory_, clock_);
    EXPECT_EQ(digests.lookup(file_)->digest, sha256("one"));
    reads.push_back(digests.computed_count());
    ASSERT_TRUE(digests.save().has_value());
    if (i == 1) pass(seconds(3));
  }
  EXPECT_EQ(reads, (std::vector<std::size_t>{1, 1, 1, 0}));
}

TEST_F(NetworkFilesTest, DependencySetSeesSecondEdit) {
  FileDigestCache digests("", clock_);
  DependencySet dependency_set;
  dependency_set.items = {{DependencySet::kAbsolute, DependencySet::State::Read, file_, sha256("one"), 0}};
  EXPECT_FALSE(check(dependency_set, {directory_.path(), {}}, digests).has_value());
  server_->write("header.h", "two");
  EXPECT_TRUE(check(dependency_set, {directory_.path(), {}}, digests).has_value());
}

}  // namespace
}  // namespace kiln::test
