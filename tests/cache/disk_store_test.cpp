// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_store.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class DiskStoreTest : public testing::Test {
 protected:
  std::unique_ptr<DiskStore> open(DiskStore::Options options = {}) {
    if (options.root.empty()) options.root = root_;
    return DiskStore::open(std::move(options), events_.emitter(), clock_).value();
  }
  std::string path_of(const ArtifactKey& key) const {
    return root_ + "/v1/" + ShardedName("entries", key.digest).str();
  }
  static bool has(Store& store, const ArtifactKey& key) {
    const auto hit = store.get(key, {});
    EXPECT_TRUE(hit.has_value());
    return hit.has_value() && hit->has_value();
  }
  static bool put(Store& store, int number, std::size_t size = 1'000, double cost_ms = 100) {
    return store.put(key_number(number), artifact_of(key_number(number), size, cost_ms), {}).has_value();
  }
  void set_age(const std::string& path, std::chrono::nanoseconds age) const {
    const auto time = clock_.wall() - age;
    const timespec times[2] = {{0, UTIME_OMIT}, {time.count() / 1'000'000'000, time.count() % 1'000'000'000}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  std::chrono::nanoseconds age(const std::string& path) const {
    return clock_.wall() - std::chrono::nanoseconds(stamp_of(path.c_str())->modified_ns);
  }

  TemporaryDirectory directory_;
  const std::string root_ = directory_.path("a/cache");
  EventLog events_;
  ManualClock clock_;
};

TEST_F(DiskStoreTest, CreatesNothingBeforeFirstPut) {
  const auto store = open();
  EXPECT_FALSE(has(*store, key_number(1)));
  EXPECT_TRUE(store->dependency_sets(request_number(1), Store::kMaxDependencySets, {})->empty());
  EXPECT_TRUE(store->is_writable());
  EXPECT_TRUE(store->check().has_value());
  EXPECT_EQ(store->stats()->entries, 0u);
  EXPECT_TRUE(store->list_entries()->empty());
  EXPECT_EQ(store->clear()->removed_files, 0u);
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(DiskStoreTest, RejectsRelativePathAtOpen) {
  EXPECT_FALSE(DiskStore::open({.root = "relative"}).has_value());
  EXPECT_FALSE(DiskStore::open({.root = ""}).has_value());
}

TEST_F(DiskStoreTest, EntryIsOneFileInVersionAndShardWithoutTemporaries) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 1));
  EXPECT_TRUE(fs::is_regular_file(path_of(key_number(1))));
  EXPECT_TRUE(fs::is_empty(root_ + "/v1/tmp"));
  EXPECT_TRUE(fs::exists(root_ + "/v1/CACHEDIR.TAG"));
}

TEST_F(DiskStoreTest, OtherUsersCanReadButNotWrite) {
  const mode_t mask = umask(0);
  const auto store = open();
  const bool stored = put(*store, 1);
  umask(mask);
  ASSERT_TRUE(stored);
  for (std::string path = path_of(key_number(1)); path.size() >= root_.size(); path = fs::path(path).parent_path()) {
    struct stat status;
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0022, 0u) << path;
    EXPECT_EQ(status.st_mode & 0044, 0044u) << path;
  }
}

TEST_F(DiskStoreTest, CorruptEntryIsRemovedReportedAndCanBePutAgain) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 1));
  std::string bytes = read_text(path_of(key_number(1)));
  bytes[bytes.size() - 3] ^= 1;
  write_text(path_of(key_number(1)), bytes);
  EXPECT_FALSE(has(*store, key_number(1)));
  EXPECT_FALSE(fs::exists(path_of(key_number(1))));
  ASSERT_EQ(events_.count(Event::Kind::EntryDropped), 1u);
  EXPECT_EQ(events_.of(Event::Kind::EntryDropped)[0].key, key_number(1).hex());
  ASSERT_TRUE(put(*store, 1));
  EXPECT_TRUE(has(*store, key_number(1)));
}

TEST_F(DiskStoreTest, EntryUnderNameOfAnotherKeyIsCorrupt) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 1));
  fs::create_directories(fs::path(path_of(key_number(2))).parent_path());
  fs::copy_file(path_of(key_number(1)), path_of(key_number(2)));
  EXPECT_FALSE(has(*store, key_number(2)));
  EXPECT_FALSE(fs::exists(path_of(key_number(2))));
  EXPECT_TRUE(has(*store, key_number(1)));
}

TEST_F(DiskStoreTest, NonRegularFileNeitherHangsNorServes) {
  const auto store = open();
  for (const int number : {1, 2, 3}) {
    ASSERT_TRUE(put(*store, number));
    fs::remove(path_of(key_number(number)));
  }
  ASSERT_EQ(mkfifo(path_of(key_number(1)).c_str(), 0600), 0);
  fs::create_symlink("/etc/passwd", path_of(key_number(2)));
  fs::create_directory(path_of(key_number(3)));
  for (const int number : {1, 2, 3}) {
    EXPECT_FALSE(has(*store, key_number(number))) << number;
    EXPECT_TRUE(put(*store, number)) << number;
    EXPECT_TRUE(has(*store, key_number(number))) << number;
  }
}

TEST_F(DiskStoreTest, LinkIsNotFollowedEvenToValidEntry) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 1));
  fs::rename(path_of(key_number(1)), directory_.path("elsewhere"));
  fs::create_symlink(directory_.path("elsewhere"), path_of(key_number(1)));
  EXPECT_FALSE(has(*store, key_number(1)));
  EXPECT_TRUE(fs::exists(directory_.path("elsewhere")));
}

TEST_F(DiskStoreTest, HitUpdatesTimestampAtMostHourly) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 1));
  set_age(path_of(key_number(1)), 30min);
  EXPECT_TRUE(has(*store, key_number(1)));
  EXPECT_GT(age(path_of(key_number(1))), 29min);
  set_age(path_of(key_number(1)), 2h);
  EXPECT_TRUE(has(*store, key_number(1)));
  EXPECT_LT(age(path_of(key_number(1))), 1min);
}

TEST_F(DiskStoreTest, ReadOnlyStoreServesHitsAndIsNeverWritten) {
  ASSERT_TRUE(put(*open(), 1));
  set_age(path_of(key_number(1)), 2h);
  const auto before = files_below(root_);
  const auto store = open({.root = root_, .read_only = true});
  EXPECT_FALSE(store->is_writable());
  EXPECT_TRUE(has(*store, key_number(1)));
  EXPECT_GT(age(path_of(key_number(1))), 1h);
  EXPECT_FALSE(put(*store, 2));
  EXPECT_FALSE(store->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  write_text(path_of(key_number(1)), "damaged");
  EXPECT_FALSE(has(*store, key_number(1)));
  EXPECT_EQ(files_below(root_), before);
}

TEST_F(DiskStoreTest, RecreatesCacheThatIsRemovedWhileInUse) {
  const auto store = open();
  const auto reader = open();
  ASSERT_TRUE(put(*store, 1));
  EXPECT_TRUE(has(*reader, key_number(1)));
  fs::remove_all(root_);
  EXPECT_FALSE(has(*store, key_number(1)));
  ASSERT_TRUE(put(*store, 2));
  EXPECT_TRUE(has(*store, key_number(2)));
  EXPECT_TRUE(has(*reader, key_number(2)));
  fs::remove_all(root_ + "/v1/tmp");
  fs::remove_all(root_ + "/v1/entries");
  EXPECT_TRUE(put(*store, 3));
  EXPECT_TRUE(has(*store, key_number(3)));
}

TEST_F(DiskStoreTest, CorruptHintsAreRemovedWithoutError) {
  const auto store = open();
  for (const int number : {1, 2})
    ASSERT_TRUE(store->add_dependency_set(request_number(1), dependency_set_number(number), {}).has_value());
  const std::string path = root_ + "/v1/" + ShardedName("hints", request_number(1).digest).str();
  std::string bytes = read_text(path);
  bytes.back() ^= 1;  // in the older dependency set
  write_text(path, bytes);
  EXPECT_EQ(*store->dependency_sets(request_number(1), 1, {}), std::vector<DependencySet>{dependency_set_number(2)});
  EXPECT_EQ(*store->dependency_sets(request_number(1), Store::kMaxDependencySets, {}),
            std::vector<DependencySet>{dependency_set_number(2)});
  EXPECT_FALSE(fs::exists(path));
  write_text(path, "nonsense");
  EXPECT_TRUE(store->dependency_sets(request_number(1), Store::kMaxDependencySets, {})->empty());
  EXPECT_TRUE(store->add_dependency_set(request_number(1), dependency_set_number(3), {}).has_value());
  EXPECT_EQ(*store->dependency_sets(request_number(1), Store::kMaxDependencySets, {}),
            std::vector<DependencySet>{dependency_set_number(3)});
}

TEST_F(DiskStoreTest, StatsAndListReportContents) {
  const auto store = open();
  for (const int number : {1, 2, 3}) ASSERT_TRUE(put(*store, number, 1'000, 10.0 * number));
  ASSERT_TRUE(store->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  const auto stats = store->stats();
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->entries, 3u);
  EXPECT_GT(stats->by_kind.at(CachedFile::Kind::Hint), 0u);
  EXPECT_GT(stats->by_kind.at(CachedFile::Kind::Entry), 3'000u);
  EXPECT_GE(stats->newest, stats->oldest);
  const auto listed = store->list_entries();
  ASSERT_TRUE(listed.has_value());
  ASSERT_EQ(listed->size(), 3u);
  EXPECT_TRUE(std::is_sorted(listed->begin(), listed->end(), [](auto& a, auto& b) { return a.key < b.key; }));
  for (const DiskStore::EntryInfo& entry : *listed) {
    EXPECT_EQ(entry.payload, 1'000u);
    EXPECT_EQ(entry.unit, "unit of a test");
    EXPECT_EQ(entry.compiler, "nvrtc 13.0.88");
    EXPECT_EQ(entry.target, Target::sm(80));
    if (entry.key == key_number(2)) {
      EXPECT_EQ(entry.cost_ms, 20);
    }
  }
}

TEST_F(DiskStoreTest, ListReadsMetadataOfAnyLength) {
  const auto store = open();
  Artifact artifact = artifact_of(key_number(1), 10);
  artifact.metadata.log.assign(50'000, 'w');
  ASSERT_TRUE(store->put(key_number(1), artifact, {}).has_value());
  ASSERT_EQ(store->list_entries()->size(), 1u);
  EXPECT_EQ(store->list_entries()->front().unit, "unit of a test");
}

TEST_F(DiskStoreTest, VerifyCountsAndRemovesCorruptEntries) {
  const auto store = open();
  for (const int number : {1, 2, 3}) ASSERT_TRUE(put(*store, number));
  write_text(path_of(key_number(2)), "nonsense");
  write_text(root_ + "/v1/entries/stray", "nonsense");
  const auto verified = store->verify();
  ASSERT_TRUE(verified.has_value());
  EXPECT_EQ(verified->valid, 2u);
  EXPECT_EQ(verified->corrupt, 2u);
  EXPECT_EQ(store->verify()->corrupt, 0u);
}

TEST_F(DiskStoreTest, StoreIsUsableAfterClear) {
  const auto store = open();
  for (const int number : {1, 2}) ASSERT_TRUE(put(*store, number));
  ASSERT_TRUE(store->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  EXPECT_EQ(store->clear()->removed_files, 3u);
  EXPECT_FALSE(has(*store, key_number(1)));
  EXPECT_TRUE(store->dependency_sets(request_number(1), Store::kMaxDependencySets, {})->empty());
  EXPECT_EQ(store->stats()->entries, 0u);
  ASSERT_TRUE(put(*store, 1));
  EXPECT_TRUE(has(*store, key_number(1)));
}

}  // namespace
}  // namespace kiln::test
