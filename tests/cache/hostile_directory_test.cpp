// SPDX-License-Identifier: Apache-2.0
// Locations where a cache must not or cannot be. The store reports the reason and neither hangs nor throws.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "cache/disk_store.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOtherUser = 12345;

bool put(Store& store, int number, std::size_t size = 1'000) {
  return store.put(key_number(number), artifact_of(key_number(number), size), {}).has_value();
}
bool serves(Store& store, int number, std::size_t size = 1'000) {
  const auto hit = store.get(key_number(number), {});
  return hit && *hit && same((*hit)->artifact, artifact_of(key_number(number), size));
}

class HostileDirectory : public testing::Test {
 protected:
  std::unique_ptr<DiskStore> open(std::vector<uid_t> trusted = {}) {
    return DiskStore::open({.root = root_, .trusted_owners = std::move(trusted)}).value();
  }
  void expect_rejected(const std::string& reason) {
    const auto store = open();
    for (int i = 0; i < 2; ++i) {
      const auto hit = store->get(key_number(1), {});
      ASSERT_FALSE(hit.has_value());
      EXPECT_NE(hit.error().message.find(reason), std::string::npos) << hit.error().message;
      const Status status = store->put(key_number(1), artifact_of(key_number(1), 10), {});
      ASSERT_FALSE(status.has_value());
      EXPECT_NE(status.error().message.find(reason), std::string::npos) << status.error().message;
    }
    EXPECT_FALSE(store->check().has_value());
    EXPECT_FALSE(store->is_writable());
    EXPECT_FALSE(fs::exists(root_ + "/v1"));
  }

  TemporaryDirectory directory_;
  const std::string root_ = directory_.path("cache");
};

TEST_F(HostileDirectory, FifoIsRejected) {
  ASSERT_EQ(mkfifo(root_.c_str(), 0600), 0);
  expect_rejected("not a directory");
}

TEST_F(HostileDirectory, FileIsRejected) {
  write_text(root_, "x");
  expect_rejected("not a directory");
}

TEST_F(HostileDirectory, DirectoryWritableByOthersIsRejected) {
  fs::create_directory(root_);
  ASSERT_EQ(chmod(root_.c_str(), 0777), 0);
  expect_rejected("chmod go-w");
}

TEST_F(HostileDirectory, OwnLinkIsFollowed) {
  fs::create_directory(directory_.path("real"));
  fs::create_symlink(directory_.path("real"), root_);
  const auto store = open();
  ASSERT_TRUE(put(*store, 1));
  EXPECT_TRUE(serves(*store, 1));
  EXPECT_TRUE(fs::exists(directory_.path("real/v1")));
}

TEST_F(HostileDirectory, DanglingLinkFailsOnlyPut) {
  fs::create_symlink(directory_.path("nowhere"), root_);
  EXPECT_FALSE(put(*open(), 1));
}

TEST_F(HostileDirectory, LinkOfAnotherUserIsRejected) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::create_directory(directory_.path("real"));
  fs::create_symlink(directory_.path("real"), root_);
  ASSERT_EQ(lchown(root_.c_str(), kOtherUser, kOtherUser), 0);
  expect_rejected("symbolic link that belongs to another user");
}

TEST_F(HostileDirectory, DirectoryOfAnotherUserIsRejectedUnlessTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_TRUE(put(*open(), 1));
  for (const char* path : {"", "/v1"}) ASSERT_EQ(chown((root_ + path).c_str(), kOtherUser, kOtherUser), 0);
  const auto rejected = open()->get(key_number(1), {});
  ASSERT_FALSE(rejected.has_value());
  EXPECT_NE(rejected.error().message.find("user 12345"), std::string::npos);
  const auto trusting = open({kOtherUser});
  EXPECT_TRUE(serves(*trusting, 1));
  EXPECT_FALSE(trusting->is_writable());
  EXPECT_FALSE(put(*trusting, 2));
}

TEST_F(HostileDirectory, CacheFilledByRootServesOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
  {
    const auto store = open();
    ASSERT_TRUE(put(*store, 1));
    ASSERT_TRUE(store->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  }
  const auto before = files_below(root_);
  EXPECT_EQ(
      run_in_child([&] {
        if (!become(kOtherUser) || unsetenv("HOME") != 0) return 2;
        const auto store = open();
        if (!serves(*store, 1)) return 3;
        if (*store->dependency_sets(request_number(1), 1, {}) != std::vector<DependencySet>{dependency_set_number(1)})
          return 4;
        if (store->is_writable() || put(*store, 2)) return 5;
        return 0;
      }),
      0);
  EXPECT_EQ(files_below(root_), before);
}

TEST_F(HostileDirectory, UnwritableDirectoryFailsOnlyPut) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to switch to an unprivileged user";
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
  EXPECT_EQ(run_in_child([&] {
              if (!become(kOtherUser)) return 2;
              const auto store = open();
              const auto hit = store->get(key_number(1), {});
              if (!hit || *hit) return 3;
              const Status status = store->put(key_number(1), artifact_of(key_number(1), 10), {});
              return !status && status.error().message.find("Permission denied") != std::string::npos ? 0 : 4;
            }),
            0);
}

// Runs with a small private file system that the rest of the machine does not see. Returns 77 if that is not permitted.
int on_small_disk(const std::string& path, const char* options, const std::function<int()>& work) {
  return run_in_child([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    if (mount("tmpfs", path.c_str(), "tmpfs", 0, options) != 0) return 77;
    return work();
  });
}

TEST_F(HostileDirectory, FullDiskFailsPutAndLeavesNoPartialFile) {
  const int result = on_small_disk(directory_.path(), "size=256k,mode=0755", [&] {
    const auto store = open();
    int stored = 0;
    while (stored < 100 && put(*store, stored, 40'000)) ++stored;
    if (stored == 0 || stored == 100) return 2;
    const Status full = store->put(key_number(stored), artifact_of(key_number(stored), 40'000), {});
    if (full || full.error().message.find("No space left") == std::string::npos) return 3;
    for (int i = 0; i < stored; ++i) {
      if (!serves(*store, i, 40'000)) return 4;
    }
    if (!files_below(root_ + "/v1/tmp").empty()) return 5;
    if (store->verify()->corrupt != 0) return 6;
    return 0;
  });
  if (result == 77) GTEST_SKIP() << "mounting a file system is not permitted";
  EXPECT_EQ(result, 0);
}

TEST_F(HostileDirectory, ReadOnlyFileSystemServesHitsAndRejectsPuts) {
  const int result = on_small_disk(directory_.path(), "size=1m,mode=0755", [&] {
    if (!put(*open(), 1)) return 2;
    if (mount(nullptr, directory_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return 3;
    const auto store = open();
    if (!serves(*store, 1)) return 4;
    const Status status = store->put(key_number(2), artifact_of(key_number(2), 10), {});
    if (status || status.error().message.find("Read-only file system") == std::string::npos) return 5;
    return 0;
  });
  if (result == 77) GTEST_SKIP() << "mounting a file system is not permitted";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace kiln::test
