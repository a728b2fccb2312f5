// SPDX-License-Identifier: Apache-2.0
// Attacks on caches: directories above a cache or in its place, and the lock of its collection.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/file_digest_cache.hpp"
#include "bundle/epoch_memory.hpp"
#include "cache/cache_owners.hpp"
#include "cache/disk_store.hpp"
#include "hostile/two_users.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class HostileCache : public TwoUsers {};

// The owner of a rejected cache links its directory to one of the victim.
TEST_F(HostileCache, RejectedCacheIsNotWrittenThroughItsLinks) {
  const std::string cache = room() + "/cache";
  const std::string documents = home(kVictim) + "/documents";
  make_directory(cache, 0755, kAttacker);
  make_directory(documents, 0700, kVictim);
  ASSERT_EQ(as(kAttacker, [&] { return symlink(documents.c_str(), (cache + "/v1").c_str()); }), 0);
  const std::string source = room() + "/source";
  make_file(source, "text", 0644, 0);
  fs::last_write_time(source, fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(as(kVictim,
               [&] {
                 setenv("XDG_RUNTIME_DIR", home(kVictim).c_str(), 1);
                 if (is_trusted_cache(cache, {})) return 1;
                 ManualClock clock;
                 clock.advance(std::chrono::hours(1));
                 FileDigestCache digests(cache + "/v1/digests", clock);
                 if (!digests.lookup(source)) return 2;
                 (void)digests.save();
                 (void)EpochMemory(cache + "/v1/epochs", {}).admit("acme/vision", 5, true);
                 return 0;
               }),
            0);
  EXPECT_EQ(files_below(documents), std::vector<std::string>());
}

TEST_F(HostileCache, RootUsesNoCacheBelowADirectoryOfAnotherUser) {
  const ScopedEnv kubernetes("KUBERNETES_SERVICE_HOST", nullptr);
  const ScopedEnv podman("container", nullptr);
  const std::string host = room() + "/host";
  const std::string image = room() + "/image";
  for (const std::string& root : {host, image}) make_directory(root, 0755, 0);
  make_file(image + "/.dockerenv", "", 0644, 0);
  const auto check = [&](const std::string& cache, std::vector<uid_t> owners, const std::string& root) {
    return check_above_cache(cache, owners, {root, std::uint32_t{0xEF53}}).has_value();
  };
  const std::string cache = home(kAttacker) + "/.cache/kiln";
  EXPECT_FALSE(check(cache, {}, host));
  EXPECT_TRUE(check(cache, {kAttacker}, host)) << "listed in cache.trusted_users";
  EXPECT_TRUE(check(cache, {}, image)) << "the users of a container are one person";
  EXPECT_TRUE(check(room() + "/kiln", {}, host));
  ASSERT_EQ(symlink(home(kAttacker).c_str(), (room() + "/link").c_str()), 0);
  EXPECT_FALSE(check(room() + "/link/kiln", {}, host)) << "a link of root to a directory of another user";
  EXPECT_EQ(as(kVictim, [&] { return check(cache, {}, host) ? 0 : 1; }), 0) << "other users choose their own caches";
}

// A user who can read a file can lock it.
TEST_F(HostileCache, ReadersOfACacheCannotBlockItsCollection) {
  const std::string root = home(kVictim) + "/cache";
  make_directory(root, 0755, kVictim);
  const auto collect = [&] {
    const auto store = DiskStore::open({.root = root}).value();
    return store->put(key_number(1), artifact_of(key_number(1), 1'000), {}) && store->gc() ? 0 : 1;
  };
  ASSERT_EQ(as(kVictim, collect), 0);
  ASSERT_EQ(chmod((root + "/v1/gc").c_str(), 0644), 0) << "as earlier versions created it";
  ASSERT_EQ(chmod(home(kVictim).c_str(), 0755), 0);
  ASSERT_EQ(as(kVictim, collect), 0);
  EXPECT_EQ(as(kAttacker, [&] { return open((root + "/v1/gc").c_str(), O_RDONLY) < 0 && errno == EACCES ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace kiln::test
