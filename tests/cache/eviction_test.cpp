// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/disk_store.hpp"
#include "cache/garbage_collector.hpp"
#include "cache/usage_format.hpp"
#include "cache/usage_journal.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Eviction : public testing::Test {
 protected:
  std::unique_ptr<DiskStore> open(std::uint64_t bound) {
    return DiskStore::open({.root = root_, .max_bytes = bound}, events_.emitter(), clock_).value();
  }
  static void put(Store& store, int number, std::size_t size, double cost_ms) {
    ASSERT_TRUE(store.put(key_number(number), artifact_of(key_number(number), size, cost_ms), {}).has_value());
  }
  std::string path_of(int number) const {
    return root_ + "/v1/" + ShardedName("entries", key_number(number).digest).str();
  }
  bool there(int number) const { return fs::exists(path_of(number)); }
  // A child that is killed in the middle of a write.
  static int die_writing(Store& store) {
    return run_in_child([&] {
      const rlimit none{0, 0};
      const rlimit small{5'000, 5'000};
      setrlimit(RLIMIT_CORE, &none);
      setrlimit(RLIMIT_FSIZE, &small);
      return store.put(key_number(2), artifact_of(key_number(2), 10'000), {}).has_value() ? 0 : 1;
    });
  }
  std::vector<std::string> temporary_files() const { return files_below(root_ + "/v1/tmp"); }
  void set_age(const std::string& path, std::chrono::nanoseconds age) const {
    const auto time = clock_.wall() - age;
    const timespec times[2] = {{0, UTIME_OMIT}, {time.count() / 1'000'000'000, time.count() % 1'000'000'000}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  TemporaryDirectory directory_;
  const std::string root_ = directory_.path("cache");
  EventLog events_;
  ManualClock clock_;
};

TEST_F(Eviction, SizeStaysBelowLimitWhileEntriesAreAdded) {
  const auto store = open(200'000);
  for (int number = 0; number < 100; ++number) {
    put(*store, number, 10'000, 100);
    ASSERT_LE(store->stats()->bytes, 200'000u + 1'000);
  }
  EXPECT_GT(store->stats()->entries, 15u);
  EXPECT_GE(events_.count(Event::Kind::Evicted), 1u);
}

TEST_F(Eviction, SeveralStoresInOneDirectoryShareTheLimit) {
  const auto first = open(200'000);
  const auto second = open(200'000);
  for (int number = 0; number < 60; ++number) put(number % 2 == 0 ? *first : *second, number, 10'000, 100);
  EXPECT_LE(first->stats()->bytes, 201'000u);
}

TEST_F(Eviction, CheapEntriesAreEvictedBeforeCostlyOnes) {
  const auto store = open(100'000);
  for (int number = 0; number < 8; ++number) put(*store, number, 10'000, number % 2 == 0 ? 10'000 : 1);
  put(*store, 8, 20'000, 10'000);
  for (int number = 0; number < 8; number += 2) EXPECT_TRUE(there(number)) << number;
  EXPECT_LT(there(1) + there(3) + there(5) + there(7), 4);
}

TEST_F(Eviction, NewestEntryStaysEvenIfCheap) {
  const auto store = open(100'000);
  for (int number = 0; number < 8; ++number) put(*store, number, 10'000, 10'000);
  for (int number = 8; number < 14; ++number) {
    for (int earlier = 0; earlier < number; ++earlier) {
      if (there(earlier)) set_age(path_of(earlier), 1h);
    }
    put(*store, number, 10'000, 1);
    EXPECT_TRUE(there(number)) << number;
    ASSERT_LE(store->stats()->bytes, 101'000u);
  }
  int costly = 0;
  for (int number = 0; number < 8; ++number) costly += there(number) ? 1 : 0;
  EXPECT_GE(costly, 7);
}

TEST_F(Eviction, RecentlyUsedEntriesStay) {
  const auto store = open(100'000);
  for (int number = 0; number < 8; ++number) put(*store, number, 10'000, 100);
  for (int number = 0; number < 8; ++number) set_age(path_of(number), 14 * 24h);
  for (int number = 0; number < 4; ++number) ASSERT_TRUE((*store->get(key_number(number), {})).has_value());
  put(*store, 8, 25'000, 100);
  for (int number = 0; number < 4; ++number) EXPECT_TRUE(there(number)) << number;
  EXPECT_LT(there(4) + there(5) + there(6) + there(7), 4);
  EXPECT_TRUE(there(8));
}

TEST_F(Eviction, RejectsArtifactLargerThanLimitWithoutEvicting) {
  const auto store = open(100'000);
  put(*store, 1, 10'000, 1);
  EXPECT_FALSE(store->put(key_number(2), artifact_of(key_number(2), 200'000), {}).has_value());
  EXPECT_TRUE(there(1));
}

TEST_F(Eviction, UsedHintsStay) {
  const auto store = open(200'000);
  ASSERT_TRUE(store->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  for (int number = 0; number < 100; ++number) {
    put(*store, number, 10'000, 100);
    clock_.advance(24h);
    ASSERT_EQ(store->dependency_sets(request_number(1), 1, {})->size(), 1u) << number;
  }
}

TEST_F(Eviction, OtherVersionsCountAndAgeOutButUnknownDirectoriesStay) {
  const auto store = open(100'000);
  put(*store, 0, 10, 1);
  fs::create_directories(root_ + "/v7/deep/er");
  fs::create_directories(root_ + "/v8");
  write_text(root_ + "/v7/CACHEDIR.TAG", "kiln");
  write_text(root_ + "/v7/deep/er/old", std::string(50'000, 'x'));
  write_text(root_ + "/v7/new", std::string(1'000, 'x'));
  write_text(root_ + "/v8/not_kilns", std::string(500'000, 'x'));
  write_text(root_ + "/mine", std::string(500'000, 'x'));
  set_age(root_ + "/v7/deep/er/old", 60 * 24h);
  EXPECT_GT(store->stats()->by_kind.at(CachedFile::Kind::OtherVersion), 50'000u);
  for (int number = 1; number <= 7; ++number) put(*store, number, 10'000, 100);
  ASSERT_TRUE(store->gc().has_value());
  EXPECT_FALSE(fs::exists(root_ + "/v7/deep/er/old"));
  EXPECT_TRUE(fs::exists(root_ + "/v7/CACHEDIR.TAG"));
  EXPECT_TRUE(fs::exists(root_ + "/v8/not_kilns"));
  EXPECT_TRUE(fs::exists(root_ + "/mine"));
  for (int number = 1; number <= 7; ++number) EXPECT_TRUE(there(number)) << number;
}

TEST_F(Eviction, IgnoresFilesDeeperThanAnyReleaseWrites) {
  const auto store = open(100'000);
  put(*store, 0, 10, 1);
  std::string deepest = root_ + "/v7";
  for (int depth = 1; depth <= 16; ++depth) deepest += "/" + std::to_string(depth);
  fs::create_directories(deepest + "/17");
  write_text(root_ + "/v7/CACHEDIR.TAG", "kiln");
  write_text(deepest + "/seen", std::string(1'000, 'x'));
  write_text(deepest + "/17/not_seen", std::string(10'000, 'x'));
  EXPECT_EQ(store->stats()->by_kind.at(CachedFile::Kind::OtherVersion), 1'000u);
}

TEST_F(Eviction, CountsFilesAddedDuringScan) {
  CacheDirectory directory({.root = root_}, clock_);
  UsageJournal journal(directory);
  // With a journal that has only its header, and with one that has records.
  ASSERT_TRUE(directory.publish("usage", {encode_usage_head(clock_.wall())}, [](std::int64_t) {}).has_value());
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t mark = journal.length();
    ASSERT_TRUE(journal.add(100).has_value());
    ASSERT_TRUE(journal.replace(1'000, mark).has_value());
    EXPECT_EQ(journal.add(0)->bytes, 1'100u) << round;
  }
}

TEST_F(Eviction, CountsFileBeforeRenameAndReplacedFileAfterwards) {
  CacheDirectory directory({.root = root_}, clock_);
  const auto publish = [&](std::size_t size) {
    std::vector<std::pair<std::int64_t, std::uintmax_t>> reported;  // and the size visible to readers at each call
    const std::string bytes(size, 'x');
    EXPECT_TRUE(directory
                    .publish("file", {bytes},
                             [&](std::int64_t grown) {
                               const std::string path = root_ + "/v1/file";
                               reported.emplace_back(grown, fs::exists(path) ? fs::file_size(path) : 0);
                             })
                    .has_value());
    return reported;
  };
  using Reported = std::vector<std::pair<std::int64_t, std::uintmax_t>>;
  EXPECT_EQ(publish(100), (Reported{{100, 0}}));
  EXPECT_EQ(publish(30), (Reported{{30, 100}, {-100, 30}}));
}

TEST_F(Eviction, FailedRenameIsUncountedAndLeavesNothing) {
  CacheDirectory directory({.root = root_}, clock_);
  std::int64_t sum = 0;
  int times = 0;
  const auto count = [&](std::int64_t grown) {
    sum += grown;
    ++times;
  };
  ASSERT_TRUE(directory.publish("first", {""}, count).has_value());
  times = 0;
  fs::create_directories(root_ + "/v1/file/in_the_way");
  EXPECT_FALSE(directory.publish("file", {"bytes"}, count).has_value());
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(times, 4) << "two attempts";
  EXPECT_THROW((void)directory.publish("other", {"bytes"}, [](std::int64_t) { throw std::bad_alloc(); }).has_value(),
               std::bad_alloc);
  EXPECT_TRUE(temporary_files().empty());
}

// A file that is renamed during the scan is then seen twice, never missed.
TEST_F(Eviction, ScansTemporaryFilesFirst) {
  const auto store = open(0);
  put(*store, 1, 10, 1);
  write_text(root_ + "/v1/tmp/writer-on-another-host-1-1", "x");
  CacheDirectory directory({.root = root_}, clock_);
  const CacheScan scan = scan_cache(**directory.open());
  ASSERT_GT(scan.files.size(), 1U);
  EXPECT_EQ(scan.files.front().kind, CachedFile::Kind::Temporary);
}

TEST_F(Eviction, RemovesTemporaryFilesOfDeadWritersOnly) {
  const auto store = open(0);
  put(*store, 1, 10, 1);
  const std::string alive = root_ + "/v1/tmp/writer-on-another-host-1-1";
  const std::string old = root_ + "/v1/tmp/writer-on-another-host-1-2";
  write_text(alive, "x");
  write_text(old, "x");
  set_age(old, 2h);
  ASSERT_EQ(die_writing(*store), 128 + SIGXFSZ);
  ASSERT_EQ(temporary_files().size(), 3u);
  ASSERT_TRUE(store->gc().has_value());
  EXPECT_TRUE(fs::exists(alive));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(temporary_files().size(), 1u);
}

TEST_F(Eviction, FirstWriteOfProcessRemovesFilesOfDeadWritersOnly) {
  put(*open(0), 1, 10, 1);
  const std::string alive = root_ + "/v1/tmp/writer-on-another-host-1-1";
  write_text(alive, "x");
  ASSERT_EQ(die_writing(*open(0)), 128 + SIGXFSZ);
  ASSERT_EQ(temporary_files().size(), 2u);
  const auto store = open(0);
  ASSERT_TRUE((*store->get(key_number(1), {})).has_value());
  EXPECT_EQ(temporary_files().size(), 2u) << "a read must not write";
  put(*store, 3, 10, 1);
  EXPECT_EQ(temporary_files(), std::vector<std::string>{alive});
  // Later writes do not scan again.
  ASSERT_EQ(die_writing(*open(0)), 128 + SIGXFSZ);
  put(*store, 4, 10, 1);
  EXPECT_EQ(temporary_files().size(), 2u);
  // A forked child counts as a new process.
  EXPECT_EQ(
      run_in_child([&] { return store->put(key_number(5), artifact_of(key_number(5), 10), {}).has_value() ? 0 : 1; }),
      0);
  EXPECT_EQ(temporary_files(), std::vector<std::string>{alive});
}

TEST_F(Eviction, OneProcessCollectsAtATime) {
  const auto store = open(0);
  put(*store, 1, 10, 1);
  int ready[2];
  int done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int fd = ::open((root_ + "/v1/gc").c_str(), O_RDWR | O_CREAT, 0644);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    const bool locked = fcntl(fd, F_SETLK, &whole) == 0;
    char byte = 'x';
    (void)!write(ready[1], &byte, 1);
    (void)!read(done[0], &byte, 1);
    _exit(locked ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto collected = store->gc();
  ASSERT_TRUE(collected.has_value());
  EXPECT_TRUE(collected->busy);
  EXPECT_TRUE(store->put(key_number(2), artifact_of(key_number(2), 10), {}).has_value());
  ASSERT_EQ(write(done[1], &byte, 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(store->gc()->busy);
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) close(fd);
}

TEST_F(Eviction, NextPutRecreatesCorruptOrMissingJournal) {
  const auto store = open(50'000);
  put(*store, 1, 10'000, 100);
  for (const std::string& journal : {std::string("nonsense"), std::string()}) {
    write_text(root_ + "/v1/usage", journal);
    put(*store, 2, 10'000, 100);
    EXPECT_GT(fs::file_size(root_ + "/v1/usage"), 40u);
  }
  fs::remove(root_ + "/v1/usage");
  for (int number = 3; number < 20; ++number) put(*store, number, 10'000, 100);
  EXPECT_LE(store->stats()->bytes, 51'000u);
}

TEST_F(Eviction, NewJournalHasRecordsAddedDuringScan) {
  CacheDirectory directory({.root = root_}, clock_);
  ASSERT_TRUE(directory.open_for_write().has_value());
  UsageJournal journal(directory);
  UsageJournal others(directory);
  ASSERT_TRUE(journal.replace(1'000, 0).has_value());
  const std::uint64_t mark = journal.length();
  EXPECT_EQ(others.add(250)->bytes, 1'250U);
  ASSERT_TRUE(journal.replace(600, mark).has_value());
  EXPECT_EQ(journal.add(0)->bytes, 850U);
  EXPECT_EQ(others.add(0)->bytes, 850U) << "they detect that it is a new journal";
}

TEST_F(Eviction, ScansHourlyForChangesMissingFromJournal) {
  const auto store = open(100'000);
  put(*store, 1, 1'000, 100);
  // A process with lost appends.
  const std::string journal = read_text(root_ + "/v1/usage");
  for (int number = 2; number < 20; ++number) {
    put(*store, number, 5'000, 100);
    write_text(root_ + "/v1/usage", journal);
  }
  put(*store, 20, 8'000, 100);
  EXPECT_GT(store->stats()->bytes, 95'000u);
  clock_.advance(2h);
  put(*store, 21, 8'000, 100);
  EXPECT_LE(store->stats()->bytes, 91'000u);
}

TEST(Worth, HalvesEachWeekAndGrowsWithCostPerByte) {
  using Kind = CachedFile::Kind;
  EXPECT_DOUBLE_EQ(retention_value(Kind::Entry, 100, 1'000, 7 * 24h), retention_value(Kind::Entry, 100, 1'000, 0h) / 2);
  EXPECT_GT(retention_value(Kind::Entry, 200, 1'000, 0h), retention_value(Kind::Entry, 100, 1'000, 0h));
  EXPECT_GT(retention_value(Kind::Entry, 100, 1'000, 0h), retention_value(Kind::Entry, 100, 100'000, 0h));
  EXPECT_EQ(retention_value(Kind::Entry, 100, 1'000, -5h), retention_value(Kind::Entry, 100, 1'000, 0h));
}

}  // namespace
}  // namespace kiln::test
