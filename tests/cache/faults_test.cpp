// SPDX-License-Identifier: Apache-2.0
// Errors that the system, especially a network file system, can return.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cache/disk_store.hpp"
#include "support/fakes/faulty_calls.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

constexpr std::size_t kSize = 5'000;

class Faults : public testing::Test {
 protected:
  std::unique_ptr<DiskStore> open() { return DiskStore::open({.root = root_}).value(); }
  static Status put(Store& store, int number) {
    return store.put(key_number(number), artifact_of(key_number(number), kSize), {});
  }
  // A miss or an error costs a compile. Bytes other than those that were put are a failure.
  enum class Answer { Right, Wrong, None };
  static Answer get(Store& store, int number) {
    const auto hit = store.get(key_number(number), {});
    if (!hit || !*hit) return Answer::None;
    return same((*hit)->artifact, artifact_of(key_number(number), kSize)) ? Answer::Right : Answer::Wrong;
  }

  TemporaryDirectory directory_;
  const std::string root_ = directory_.path("cache");
};

TEST_F(Faults, TransientRenameErrorIsRetried) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 0).has_value());
  for (const int error : {ESTALE, EBUSY, ENOENT}) {
    {
      const FaultInjection fault({.call = "renameat", .error = error});
      EXPECT_TRUE(put(*store, error).has_value()) << error;
      EXPECT_EQ(fault.met(), 1);
    }
    EXPECT_EQ(get(*store, error), Answer::Right) << error;
  }
  EXPECT_TRUE(files_below(root_ + "/v1/tmp").empty());
}

TEST_F(Faults, TransientOpenOrReadErrorIsRetried) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 1).has_value());
  ASSERT_EQ(get(*store, 1), Answer::Right);
  for (const char* call : {"openat", "read"}) {
    for (const int error : {ESTALE, EBUSY}) {
      const FaultInjection fault({.call = call, .error = error});
      EXPECT_EQ(get(*store, 1), Answer::Right) << call << error;
      EXPECT_EQ(fault.met(), 1);
    }
  }
}

TEST_F(Faults, RenameThatSucceededDespiteErrorIsSuccess) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 0).has_value());
  {
    const FaultInjection fault({.call = "renameat", .error = ENOENT, .times = -1, .done = true});
    EXPECT_TRUE(put(*store, 1).has_value());
    EXPECT_GE(fault.met(), 2);
  }
  EXPECT_EQ(get(*store, 1), Answer::Right);
}

TEST_F(Faults, EntryThatStaysStaleIsMiss) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 1).has_value());
  const FaultInjection fault({.call = "openat", .error = ESTALE, .times = -1});
  const auto hit = store->get(key_number(1), {});
  ASSERT_TRUE(hit.has_value());
  EXPECT_FALSE(hit->has_value());
}

TEST_F(Faults, PersistentFailureIsErrorWithReason) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 1).has_value());
  {
    const FaultInjection fault({.call = "write", .error = ENOSPC, .times = -1});
    const Status status = put(*store, 2);
    ASSERT_FALSE(status.has_value());
    EXPECT_NE(status.error().message.find("No space left"), std::string::npos);
  }
  {
    const FaultInjection fault({.call = "read", .error = EIO, .times = -1});
    const auto hit = store->get(key_number(1), {});
    ASSERT_FALSE(hit.has_value());
    EXPECT_NE(hit.error().message.find("Input/output error"), std::string::npos);
  }
  EXPECT_EQ(get(*store, 1), Answer::Right);
  EXPECT_TRUE(files_below(root_ + "/v1/tmp").empty());
}

TEST_F(Faults, VerifyDoesNotReportUnscannedFilesAsValid) {
  const auto store = open();
  ASSERT_TRUE(put(*store, 1).has_value());
  ASSERT_EQ(store->verify()->valid, 1u);
  int failed = 0;
  for (int skip = 0; skip < 8; ++skip) {
    const FaultInjection fault({.call = "openat", .error = EIO, .skip = skip});
    const auto verified = store->verify();
    EXPECT_TRUE(!verified || verified->valid == 1 || fault.met() == 0) << skip;
    failed += verified ? 0 : 1;
  }
  EXPECT_GT(failed, 2);
}

TEST_F(Faults, IncompleteScanDoesNotExceedLimit) {
  const auto bounded = [&] { return DiskStore::open({.root = root_, .max_bytes = 5 * kSize}).value(); };
  for (int skip = 0; skip < 9; ++skip) {
    for (int number = 0; number < 4; ++number) ASSERT_TRUE(put(*bounded(), 100 * skip + number).has_value());
    {
      const FaultInjection fault({.call = "openat", .error = EIO, .skip = skip, .times = 1});
      (void)bounded()->gc().has_value();
    }
    // Few enough that an incomplete sum stays below the limit.
    for (int number = 4; number < 8; ++number) ASSERT_TRUE(put(*bounded(), 100 * skip + number).has_value());
    std::uintmax_t bytes = 0;
    for (const std::string& path : files_below(root_)) bytes += std::filesystem::file_size(path);
    EXPECT_LE(bytes, 5 * kSize) << skip;
  }
}

// Every call, every error, at every point in time, once and permanently: never wrong bytes, and the store recovers.
TEST_F(Faults, BytesAreCorrectAndStoreRecoversFromAnyFault) {
  int number = 0;
  int met = 0;
  for (const char* call : {"openat", "read", "write", "fstat", "close", "mkdirat", "renameat"}) {
    for (const int error : {ESTALE, EBUSY, ENOENT, ENOSPC, EIO}) {
      for (const int times : {1, -1}) {
        for (const int skip : {0, 1, 2, 4}) {
          const auto store = open();
          ++number;
          bool stored = false;
          {
            const FaultInjection fault({.call = call, .error = error, .skip = skip, .times = times});
            stored = put(*store, number).has_value();
            (void)store
                ->add_dependency_set(request_number(static_cast<std::uint64_t>(number)), dependency_set_number(1), {})
                .has_value();
            EXPECT_NE(get(*store, number), Answer::Wrong);
            (void)store
                ->dependency_sets(request_number(static_cast<std::uint64_t>(number)), Store::kMaxDependencySets, {})
                .has_value();
            if (skip % 2 == 0) (void)store->gc().has_value();
            met += fault.met();
          }
          ASSERT_TRUE(!stored || get(*store, number) == Answer::Right) << call << " " << error << " " << skip;
          ASSERT_TRUE(put(*store, number).has_value()) << call << " " << error << " " << skip;
          ASSERT_EQ(get(*store, number), Answer::Right) << call << " " << error << " " << skip;
        }
      }
    }
  }
  EXPECT_GT(met, 300);
  EXPECT_TRUE(files_below(root_ + "/v1/tmp").empty());
  EXPECT_EQ(open()->verify()->corrupt, 0u);
}

TEST_F(Faults, HitWritesNothingOnNetworkFileSystem) {
  {
    const auto store = open();
    ASSERT_TRUE(put(*store, 1).has_value());
    ASSERT_TRUE(store->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  }
  const timespec old[2] = {{0, UTIME_OMIT}, {1'000'000, 0}};
  for (const std::string& path : files_below(root_)) ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  {
    const OnNetwork network;
    const auto store = open();
    EXPECT_EQ(get(*store, 1), Answer::Right);
    EXPECT_EQ(store->dependency_sets(request_number(1), Store::kMaxDependencySets, {})->size(), 1u);
    EXPECT_EQ(network.writes(), 0);
  }
}

}  // namespace
}  // namespace kiln::test
