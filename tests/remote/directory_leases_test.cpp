// SPDX-License-Identifier: Apache-2.0
#include "remote/directory_leases.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

RequestKey request(int number) { return {sha256("request " + std::to_string(number))}; }

std::string file_of(const TemporaryDirectory& directory, int number) {
  return directory.path("leases/" + request(number).hex());
}

TEST(DirectoryLeases, ExpireByObserversSteadyClockOnly) {
  const TemporaryDirectory directory;
  ManualClock clock;
  DirectoryLeases holder(directory.path());
  DirectoryLeases watcher(directory.path(), clock);
  ASSERT_TRUE(holder.try_acquire(request(1), "a", 5s, 1s).value());
  EXPECT_GT(watcher.remaining_ttl(request(1), 1s).value(), 0s);
  // A file of a host whose clock is one hour behind, then of a host whose clock is one hour ahead.
  for (const auto skew : {-1h, +1h}) {
    std::filesystem::last_write_time(file_of(directory, 1), std::filesystem::file_time_type::clock::now() + skew);
    EXPECT_GT(watcher.remaining_ttl(request(1), 1s).value(), 0s);
  }
  clock.advance(4s);
  EXPECT_GT(watcher.remaining_ttl(request(1), 1s).value(), 0s);
  ASSERT_TRUE(holder.renew(request(1), "a", 5s, 1s).value());
  EXPECT_GT(watcher.remaining_ttl(request(1), 1s).value(), 0s);
  clock.advance(4s);
  EXPECT_GT(watcher.remaining_ttl(request(1), 1s).value(), 0s) << "a renewal was not detected";
  clock.advance(2s);
  EXPECT_EQ(watcher.remaining_ttl(request(1), 1s).value(), 0s);
  EXPECT_TRUE(watcher.try_acquire(request(1), "b", 5s, 1s).value());
}

TEST(DirectoryLeases, LeaveNoFilesBehind) {
  const TemporaryDirectory directory;
  ManualClock clock;
  DirectoryLeases leases(directory.path(), clock);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(leases.try_acquire(request(i), "a", 5s, 1s).value());
    ASSERT_TRUE(leases.release(request(i), "a", 1s).has_value());
  }
  EXPECT_TRUE(files_below(directory.path()).empty());
  ASSERT_TRUE(leases.try_acquire(request(1), "dead", 5s, 1s).value());
  (void)leases.remaining_ttl(request(1), 1s);
  clock.advance(6s);
  ASSERT_TRUE(leases.try_acquire(request(1), "b", 5s, 1s).value());
  EXPECT_EQ(files_below(directory.path()), std::vector<std::string>{file_of(directory, 1)});
}

TEST(DirectoryLeases, TakeoverRemovesDayOldLeftovers) {
  const TemporaryDirectory directory;
  ManualClock clock;
  DirectoryLeases leases(directory.path(), clock);
  ASSERT_TRUE(leases.try_acquire(request(1), "dead", 5s, 1s).value());
  const std::string old = file_of(directory, 2) + ".gone-crashed";
  const std::string young = file_of(directory, 3) + ".hedge-0";
  write_text(old, "x");
  write_text(young, "x");
  std::filesystem::last_write_time(old, std::filesystem::file_time_type::clock::now() - 25h);
  (void)leases.remaining_ttl(request(1), 1s);
  clock.advance(6s);
  ASSERT_TRUE(leases.try_acquire(request(1), "b", 5s, 1s).value());
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young));
}

TEST(DirectoryLeases, UnreadableLeaseExpires) {
  for (const std::string content : {"", "garbage", "kiln-lease 2\nowner a\n", "kiln-lease 1\nowner a\nlease_ms 99\n"}) {
    const TemporaryDirectory directory;
    ManualClock clock;
    DirectoryLeases leases(directory.path(), clock);
    std::filesystem::create_directory(directory.path("leases"));
    write_text(file_of(directory, 1), content);
    EXPECT_FALSE(leases.try_acquire(request(1), "a", 1s, 1s).value()) << content;
    clock.advance(6s);
    EXPECT_TRUE(leases.try_acquire(request(1), "a", 1s, 1s).value()) << content;
  }
}

TEST(DirectoryLeases, ExcessiveLeaseExpiresAfterOneHour) {
  const TemporaryDirectory directory;
  ManualClock clock;
  DirectoryLeases leases(directory.path(), clock);
  ASSERT_TRUE(leases.try_acquire(request(1), "a", std::chrono::hours(24 * 365 * 20), 1s).value());
  EXPECT_FALSE(leases.try_acquire(request(1), "b", 1s, 1s).value());
  clock.advance(61min);
  EXPECT_TRUE(leases.try_acquire(request(1), "b", 1s, 1s).value());
}

TEST(DirectoryLeases, DoNotBlockOnFifoNorFollowLinks) {
  const TemporaryDirectory directory;
  DirectoryLeases leases(directory.path());
  std::filesystem::create_directory(directory.path("leases"));
  ASSERT_EQ(mkfifo(file_of(directory, 1).c_str(), 0666), 0);
  write_text(directory.path("elsewhere"), "kept");
  std::filesystem::create_symlink(directory.path("elsewhere"), file_of(directory, 2));
  (void)leases.try_acquire(request(1), "a", 1s, 1s);
  EXPECT_FALSE(leases.try_acquire(request(2), "a", 1s, 1s).has_value());
  EXPECT_FALSE(leases.remaining_ttl(request(2), 1s).has_value());
  EXPECT_FALSE(leases.renew(request(2), "a", 1s, 1s).has_value());
  EXPECT_EQ(read_text(directory.path("elsewhere")), "kept");
}

TEST(DirectoryLeases, MissingRootIsUnavailableAndNotCreated) {
  const TemporaryDirectory directory;
  DirectoryLeases leases(directory.path("not/there"));
  const auto taken = leases.try_acquire(request(1), "a", 1s, 1s);
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, Code::Unavailable) << taken.error().message;
  EXPECT_FALSE(leases.probe(1s).has_value());
  EXPECT_FALSE(std::filesystem::exists(directory.path("not")));
  EXPECT_EQ(leases.remaining_ttl(request(1), 1s).value(), 0s) << "a directory that does not exist yet has no leases";
}

TEST(DirectoryLeases, AreRejectedIfDirectoryIsReadOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory directory;
  chmod(directory.path().c_str(), 0755);
  EXPECT_EQ(run_in_child([&] {
              if (!become(12345)) return 1;
              DirectoryLeases leases(directory.path());
              const auto taken = leases.try_acquire(request(1), "a", 1s, 1s);
              return !taken.has_value() && taken.error().code == Code::Denied && !leases.probe(1s).has_value() ? 0 : 2;
            }),
            0);
}

TEST(DirectoryLeases, AnotherUserOfGroupCanTakeOver) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory directory;
  chmod(directory.path().c_str(), 0777);
  EXPECT_EQ(run_in_child([&] {
              umask(077);
              if (!become(12345)) return 1;
              return DirectoryLeases(directory.path()).try_acquire(request(1), "a", 100ms, 1s).value() ? 0 : 2;
            }),
            0);
  EXPECT_EQ(run_in_child([&] {
              if (!become(12346)) return 1;
              ManualClock clock;
              DirectoryLeases leases(directory.path(), clock);
              if (leases.try_acquire(request(1), "b", 1s, 1s).value()) return 2;
              clock.advance(1s);
              return leases.try_acquire(request(1), "b", 1s, 1s).value() ? 0 : 3;
            }),
            0);
}

}  // namespace
}  // namespace kiln::test
