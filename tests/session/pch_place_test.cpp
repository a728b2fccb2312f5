// SPDX-License-Identifier: Apache-2.0
// The place of precompiled headers: every row of the table in docs/explanation/precompiled-headers.md.
#include "session/pch_place.hpp"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"
#include "support/processes/private_mounts.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using Storage = PchCache::Options::Storage;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = kMiB << 10;

// A container of 64 GiB with a cache in its image, a temporary directory on disk and a directory in memory. Mounts are
// those of the test's own mount namespace.
class PchPlace : public testing::Test {
 protected:
  void SetUp() override {
    const Status entered = enter_own_mounts();
    if (!entered) GTEST_SKIP() << entered.error().message;
    if (run_shell("stat -f -c %T " + room_.path() + " | grep -q tmpfs"))
      GTEST_SKIP() << "temporary files are in memory";
    for (const char* name : {"cache", "memory", "tmp", "volume"}) fs::create_directory(room_.path(name));
    say("/.dockerenv", "");
    say_memory(64 * kGiB, 32 * kGiB);
    fs::create_directories(room_.path("system/proc/self/ns"));
    say_ipc_namespace("ipc:[4026532190]");
  }
  void say_ipc_namespace(const char* name) {
    fs::remove(room_.path("system/proc/self/ns/ipc"));
    fs::create_symlink(name, room_.path("system/proc/self/ns/ipc"));
  }
  void say(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(room_.path("system") + path).parent_path());
    write_text(room_.path("system") + path, text);
  }
  // The machine has 64 GiB. `limit` is that of the control group, of which `free` is not used.
  void say_memory(std::uint64_t limit, std::uint64_t free) {
    say("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 67108864 kB\n");
    say("/proc/self/cgroup", "0::/a/b\n");
    say("/sys/fs/cgroup/a/memory.max", std::to_string(limit) + "\n");
    say("/sys/fs/cgroup/a/memory.current", std::to_string(limit - free) + "\n");
    say("/sys/fs/cgroup/a/b/memory.max", "max\n");
  }
  bool mount_memory(const std::string& size) {
    memory_ = std::make_unique<Mounted>("-t tmpfs -o mode=1777,size=" + size, "none", room_.path("memory"));
    return static_cast<bool>(*memory_);
  }
  std::optional<PchCache::Options> choose(const std::string& cache, Config config = {}) {
    return pch_cache_options(config, cache, &reason_,
                             {{room_.path("system"), filesystem_}, room_.path(), room_.path("memory")});
  }
  std::optional<PchCache::Options> choose() { return choose(room_.path("cache")); }
  std::string shared() const { return room_.path("memory/kiln-") + std::to_string(geteuid()); }
  // A place without a name in the cache directory, as in a container without usable memory.
  void expect_nameless() {
    const auto place = choose();
    ASSERT_TRUE(place.has_value()) << reason_;
    EXPECT_EQ(place->storage, Storage::Nameless);
    EXPECT_EQ(place->directory, room_.path("cache"));
    EXPECT_EQ(place->verdicts, room_.path("cache/v1/checks"));
    EXPECT_EQ(place->max_bytes, Config().pch_max_bytes);
  }

  const TemporaryDirectory room_;
  const ScopedEnv temporary_{"TMPDIR", room_.path("tmp").c_str()};
  const ScopedEnv runtime_{"XDG_RUNTIME_DIR", nullptr};
  std::unique_ptr<Mounted> memory_;
  std::uint32_t filesystem_ = EXT4_SUPER_MAGIC;
  std::string reason_;
};

TEST_F(PchPlace, NextToCacheOutsideContainer) {
  fs::remove(room_.path("system/.dockerenv"));
  const auto place = choose();
  ASSERT_TRUE(place.has_value()) << reason_;
  EXPECT_EQ(place->storage, Storage::Disk);
  EXPECT_EQ(place->directory, room_.path("cache/v1/pch"));
  EXPECT_FALSE(choose("").has_value());
}

// As in an image build with BuildKit.
TEST_F(PchPlace, HasNoNameIfOverlayIsOnlySignOfContainer) {
  fs::remove(room_.path("system/.dockerenv"));
  filesystem_ = OVERLAYFS_SUPER_MAGIC;
  expect_nameless();
}

TEST_F(PchPlace, NextToCacheInContainerIfEnabled) {
  Config config;
  config.pch_mode = true;
  const auto place = choose(room_.path("cache"), config);
  ASSERT_TRUE(place.has_value()) << reason_;
  EXPECT_EQ(place->storage, Storage::Disk);
  EXPECT_EQ(place->directory, room_.path("cache/v1/pch"));
}

TEST_F(PchPlace, NoneIfDisabled) {
  Config config;
  config.pch_mode = false;
  EXPECT_FALSE(choose(room_.path("cache"), config).has_value());
  EXPECT_NE(reason_.find("pch.mode = off"), std::string::npos) << reason_;
  config.pch_mode.reset();
  config.disable = true;
  EXPECT_FALSE(choose(room_.path("cache"), config).has_value());
}

// A bind mount of a directory of the same file system, like a volume or a cache mount of an image build.
TEST_F(PchPlace, NextToCacheOnVolume) {
  ASSERT_TRUE(mount_memory("4g"));
  const Mounted volume("--bind", room_.path("volume"), room_.path("cache"));
  ASSERT_TRUE(volume);
  for (const char* root : {"cache", "cache/not/yet/there"}) {
    const auto place = choose(room_.path(root));
    ASSERT_TRUE(place.has_value()) << reason_;
    EXPECT_EQ(place->storage, Storage::Disk);
    EXPECT_EQ(place->directory, room_.path(root) + "/v1/pch");
    EXPECT_EQ(place->max_bytes, Config().pch_max_bytes);
  }
}

TEST_F(PchPlace, InMemoryWithinAllBounds) {
  ASSERT_TRUE(mount_memory("4g"));
  const struct {
    std::uint64_t limit, free, max, bound;
  } cases[] = {{64 * kGiB, 32 * kGiB, 2 * kGiB, 2 * kGiB},    // pch.max_size
               {64 * kGiB, 32 * kGiB, 64 * kGiB, 4 * kGiB},   // the size of the file system
               {10 * kGiB, 9 * kGiB, 2 * kGiB, 1 * kGiB},     // a tenth of the limit
               {64 * kGiB, 3 * kGiB, 2 * kGiB, 768 * kMiB}};  // a quarter of what is free
  for (const auto& each : cases) {
    say_memory(each.limit, each.free);
    Config config;
    config.pch_max_bytes = each.max;
    const auto place = choose(room_.path("cache"), config);
    ASSERT_TRUE(place.has_value()) << reason_;
    EXPECT_EQ(place->storage, Storage::Memory);
    EXPECT_EQ(place->directory, shared() + "/pch");
    EXPECT_LE(place->max_bytes, each.bound);
    EXPECT_GE(place->max_bytes, each.bound - kMiB);
  }
  struct stat status;
  ASSERT_EQ(stat(shared().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

TEST_F(PchPlace, InRuntimeDirectoryIfItIsInMemory) {
  ASSERT_TRUE(mount_memory("4g"));
  fs::permissions(room_.path("memory"), fs::perms(0700));
  const ScopedEnv runtime("XDG_RUNTIME_DIR", room_.path("memory").c_str());
  const auto place = choose();
  ASSERT_TRUE(place.has_value()) << reason_;
  EXPECT_EQ(place->directory, room_.path("memory/kiln/pch"));
}

TEST_F(PchPlace, CacheInMemoryIsBounded) {
  ASSERT_TRUE(mount_memory("4g"));
  say_memory(10 * kGiB, 9 * kGiB);
  const auto place = choose(room_.path("memory/cache"));
  ASSERT_TRUE(place.has_value()) << reason_;
  EXPECT_EQ(place->storage, Storage::Memory);
  EXPECT_EQ(place->directory, room_.path("memory/cache/v1/pch"));
  EXPECT_EQ(place->max_bytes, kGiB);
}

TEST_F(PchPlace, HasNoNameIfLimitIsOneGigabyte) {
  ASSERT_TRUE(mount_memory("4g"));
  say_memory(kGiB, kGiB);
  expect_nameless();
  say_memory(64 * kGiB, kGiB);
  expect_nameless();
}

TEST_F(PchPlace, HasNoNameIfSharedMemoryIsSmall) {
  ASSERT_TRUE(mount_memory("64m"));
  expect_nameless();
}

// With --ipc=host files there would outlive the container.
TEST_F(PchPlace, SharedMemoryOfHostIsNotUsed) {
  ASSERT_TRUE(mount_memory("4g"));
  say_ipc_namespace("ipc:[4026531839]");
  expect_nameless();
  EXPECT_FALSE(fs::exists(shared()));
  fs::permissions(room_.path("memory"), fs::perms(0700));
  const ScopedEnv runtime("XDG_RUNTIME_DIR", room_.path("memory").c_str());
  const auto wanted = choose();
  ASSERT_TRUE(wanted.has_value()) << reason_;
  EXPECT_EQ(wanted->storage, Storage::Memory);
}

TEST_F(PchPlace, HasNoNameIfMemoryIsOnDisk) { expect_nameless(); }

TEST_F(PchPlace, HasNoNameInTemporaryDirectoryIfCacheIsNotUsable) {
  const auto place = choose("");
  ASSERT_TRUE(place.has_value()) << reason_;
  EXPECT_EQ(place->storage, Storage::Nameless);
  EXPECT_EQ(place->directory, room_.path("tmp"));
  EXPECT_TRUE(place->verdicts.empty());
}

TEST_F(PchPlace, TakesAtMostQuarterOfFreeDiskSpace) {
  const std::string image = room_.path("image");
  ASSERT_TRUE(run_shell("truncate -s 200M " + image + " && mkfs.ext4 -q -F -m 0 " + image));
  const Mounted disk("-o loop", image, room_.path("tmp"));
  if (!disk) GTEST_SKIP() << "cannot mount a file here";
  const auto place = choose("");
  ASSERT_TRUE(place.has_value()) << reason_;
  EXPECT_EQ(place->directory, room_.path("tmp"));
  EXPECT_LE(place->max_bytes, 50 * kMiB);
  ASSERT_TRUE(run_shell("fallocate -l 150M " + room_.path("tmp/full")));
  EXPECT_FALSE(choose("").has_value());
  EXPECT_NE(reason_.find("the disk is almost full"), std::string::npos) << reason_;
}

// A container with a read-only root. Files without a name would have no bound in memory: each process has its own.
TEST_F(PchPlace, NoneWithoutDiskAndSharedMemory) {
  {
    const Mounted read_only("--bind -o ro", room_.path("tmp"), room_.path("tmp"));
    ASSERT_TRUE(run_shell("mount -o remount,bind,ro " + room_.path("tmp")));
    EXPECT_FALSE(choose("").has_value());
    EXPECT_NE(reason_.find("Read-only file system"), std::string::npos) << reason_;
    EXPECT_NE(reason_.find("mount a volume for the cache"), std::string::npos) << reason_;
  }
  const Mounted in_memory("-t tmpfs -o mode=1777,size=4g", "none", room_.path("tmp"));
  ASSERT_TRUE(in_memory);
  EXPECT_FALSE(choose("").has_value());
  EXPECT_NE(reason_.find(room_.path("tmp") + ": in memory"), std::string::npos) << reason_;
}

class HostileMemory : public PchPlace {
 protected:
  static constexpr uid_t kOther = 61'002;
  void SetUp() override {
    PchPlace::SetUp();
    if (!IsSkipped()) {
      ASSERT_TRUE(mount_memory("4g"));
    }
  }
};

TEST_F(HostileMemory, DirectoryOfAnotherUserIsNotUsed) {
  ASSERT_EQ(mkdir(shared().c_str(), 0700), 0);
  ASSERT_EQ(chown(shared().c_str(), kOther, kOther), 0);
  expect_nameless();
}

TEST_F(HostileMemory, LinkIsNotFollowed) {
  fs::create_directory(room_.path("memory/target"));
  fs::permissions(room_.path("memory/target"), fs::perms(0700));
  fs::create_directory_symlink("target", shared());
  expect_nameless();
  ASSERT_EQ(lchown(shared().c_str(), kOther, kOther), 0);
  expect_nameless();
}

TEST_F(HostileMemory, DirectoryThatOthersCanUseIsNotUsed) {
  for (const mode_t mode : {0777, 0755, 0770, 0710}) {
    (void)mkdir(shared().c_str(), mode);
    ASSERT_EQ(chmod(shared().c_str(), mode), 0);
    expect_nameless();
  }
}

TEST_F(HostileMemory, ParentInWhichOthersCanRenameIsNotUsed) {
  ASSERT_EQ(chmod(room_.path("memory").c_str(), 0777), 0);
  expect_nameless();
  ASSERT_EQ(chmod(room_.path("memory").c_str(), 01777), 0);
  ASSERT_EQ(chown(room_.path("memory").c_str(), kOther, kOther), 0);
  expect_nameless();
}

TEST_F(HostileMemory, FileIsNotUsed) {
  write_text(shared(), "");
  expect_nameless();
}

}  // namespace
}  // namespace kiln::test
