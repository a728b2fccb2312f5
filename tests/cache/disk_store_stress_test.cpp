// SPDX-License-Identifier: Apache-2.0
// Stress tests of the disk store: many processes, killed processes, and every possible corruption of a file.
// KILN_STRESS_SECONDS sets the duration. Run before a release and by hand.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "cache/disk_store.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/shared_memory.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

constexpr int kKeys = 200;
constexpr int kProcesses = 64;
constexpr int kKills = 200;

std::size_t size_of(int number) { return 500 + static_cast<std::size_t>(number) * 331; }

int fire_seconds() {
  const char* text = std::getenv("KILN_STRESS_SECONDS");
  return text != nullptr ? std::max(1, std::atoi(text)) : 30;
}

/// Counters shared by all processes.
struct Counts {
  std::atomic<std::uint64_t> hits, misses, puts, errors, wrong, collections;
};

// One step of a process: looks up keys, puts missing entries, and sometimes collects garbage.
void work(DiskStore& store, Counts& counts, std::mt19937& random) {
  const int number = static_cast<int>(random() % kKeys);
  const ArtifactKey key = key_number(static_cast<std::uint64_t>(number));
  const auto hit = store.get(key, {});
  if (!hit) {
    ++counts.errors;
  } else if (!*hit) {
    ++counts.misses;
    const bool stored = store.put(key, artifact_of(key, size_of(number), number % 7 * 100.0), {}).has_value();
    ++(stored ? counts.puts : counts.errors);
  } else {
    ++counts.hits;
    if ((*hit)->artifact.bytes.view() != payload_of(key, size_of(number))) ++counts.wrong;
  }
  const std::uint64_t request = random() % 20;
  if (random() % 8 == 0 && !store.add_dependency_set(request_number(request), dependency_set_number(random() % 30), {}))
    ++counts.errors;
  const auto dependency_sets = store.dependency_sets(request_number(request), 1 + random() % 16, {});
  if (!dependency_sets) ++counts.errors;
  if (random() % 500 == 0) {
    if (!store.gc()) ++counts.errors;
    ++counts.collections;
  }
}

// About half of the size of all entries, so that there is always something to evict.
std::unique_ptr<DiskStore> open_bounded(const std::string& root) {
  return DiskStore::open({.root = root, .max_bytes = 3'500'000}).value();
}

pid_t start_worker(const std::string& root, Counts& counts, unsigned seed, std::chrono::nanoseconds until) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::mt19937 random(seed);
  const auto store = open_bounded(root);
  while (system_clock().steady() < until) work(*store, counts, random);
  _exit(0);
}

void expect_sound(const std::string& root) {
  const auto store = open_bounded(root);
  ASSERT_TRUE(store->gc().has_value());
  EXPECT_TRUE(files_below(root + "/v1/tmp").empty());
  const auto verified = store->verify();
  ASSERT_TRUE(verified.has_value());
  EXPECT_EQ(verified->corrupt, 0u);
  EXPECT_GT(verified->valid, 0u);
  EXPECT_LE(store->stats()->bytes, 3'500'000u + 10'000);
  for (int number = 0; number < kKeys; ++number) {
    const ArtifactKey key = key_number(static_cast<std::uint64_t>(number));
    const auto hit = store->get(key, {});
    ASSERT_TRUE(hit.has_value());
    if (*hit) {
      EXPECT_EQ((*hit)->artifact.bytes.view(), payload_of(key, size_of(number)));
    }
  }
}

TEST(DiskStoreStress, ConcurrentGetPutAndEvictNeverReturnWrongBytes) {
  const TemporaryDirectory directory;
  const std::string root = directory.path("cache");
  SharedMemory<Counts> counts;
  const auto until = system_clock().steady() + std::chrono::seconds(fire_seconds());
  std::vector<pid_t> children;
  for (unsigned i = 0; i < kProcesses; ++i) children.push_back(start_worker(root, *counts, i + 1, until));
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::printf(
      "figure: %d processes, %d s: %llu hits, %llu misses, %llu puts, %llu collections, %llu errors, %llu wrong\n",
      kProcesses, fire_seconds(), static_cast<unsigned long long>(counts->hits),
      static_cast<unsigned long long>(counts->misses), static_cast<unsigned long long>(counts->puts),
      static_cast<unsigned long long>(counts->collections), static_cast<unsigned long long>(counts->errors),
      static_cast<unsigned long long>(counts->wrong));
  EXPECT_EQ(counts->wrong, 0u);
  EXPECT_EQ(counts->errors, 0u);
  EXPECT_GT(counts->hits, 1'000u);
  EXPECT_GT(counts->puts, 100u);
  expect_sound(root);
}

TEST(DiskStoreStress, ProcessesKilledAtAnyTimeLeaveNoWrongBytes) {
  const TemporaryDirectory directory;
  const std::string root = directory.path("cache");
  SharedMemory<Counts> counts;
  std::mt19937 random(1);
  int killed = 0;
  for (int i = 0; i < kKills; ++i) {
    const pid_t child = start_worker(root, *counts, random(), system_clock().steady() + 60s);
    ASSERT_GT(child, 0);
    usleep(static_cast<useconds_t>(1'000 + random() % 20'000));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 1 : 0;
  }
  std::printf(
      "figure: %d killed: %llu hits, %llu puts, %llu wrong, %zu temporary files left for the garbage collector\n",
      killed, static_cast<unsigned long long>(counts->hits), static_cast<unsigned long long>(counts->puts),
      static_cast<unsigned long long>(counts->wrong), files_below(root + "/v1/tmp").size());
  EXPECT_EQ(killed, kKills);
  EXPECT_EQ(counts->wrong, 0u);
  EXPECT_EQ(counts->errors, 0u);
  EXPECT_GT(counts->puts, 100u);
  expect_sound(root);
}

TEST(DiskStoreStress, EveryCorruptionIsDetectedRemovedAndRepaired) {
  const TemporaryDirectory directory;
  const std::string root = directory.path("cache");
  const auto store = DiskStore::open({.root = root}).value();
  const ArtifactKey key = key_number(1);
  const Artifact artifact = artifact_of(key, 300);
  ASSERT_TRUE(store->put(key, artifact, {}).has_value());
  const std::string path = root + "/v1/" + ShardedName("entries", key.digest).str();
  const std::string sound = read_text(path);
  std::uint64_t damages = 0;
  const auto expect_healed = [&](const std::string& corrupt) {
    ++damages;
    write_text(path, corrupt);
    const auto absent = store->get(key, {});
    ASSERT_TRUE(absent.has_value());
    ASSERT_FALSE(absent->has_value());
    ASSERT_FALSE(std::filesystem::exists(path));
    ASSERT_TRUE(store->put(key, artifact, {}).has_value());
    const auto healed = store->get(key, {});
    ASSERT_TRUE(healed.has_value() && healed->has_value());
    ASSERT_TRUE(same((*healed)->artifact, artifact));
  };
  for (std::size_t bit = 0; bit < sound.size() * 8 && !HasFatalFailure(); ++bit) {
    std::string corrupt = sound;
    corrupt[bit / 8] = static_cast<char>(corrupt[bit / 8] ^ (1 << bit % 8));
    expect_healed(corrupt);
  }
  for (std::size_t size = 0; size < sound.size() && !HasFatalFailure(); ++size) expect_healed(sound.substr(0, size));
  std::printf("figure: %llu corruptions of an entry of %zu bytes: all detected, removed and repaired\n",
              static_cast<unsigned long long>(damages), sound.size());
}

}  // namespace
}  // namespace kiln::test
