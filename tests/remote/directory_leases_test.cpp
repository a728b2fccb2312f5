#include "remote/directory_leases.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.hpp"
#include "support/child.hpp"
#include "support/files.hpp"
#include "support/manual_clock.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

RequestKey request(int number) { return {sha256("request " + std::to_string(number))}; }

std::string file_of(const TemporaryDirectory& folder, int number) {
  return folder.path("leases/" + request(number).hex());
}

TEST(DirectoryLeases, AreJudgedByTheWatchersSteadyClockAloneWhateverTheFilesTimesSay) {
  const TemporaryDirectory folder;
  ManualClock clock;
  DirectoryLeases holder(folder.path());
  DirectoryLeases watcher(folder.path(), clock);
  ASSERT_TRUE(holder.take(request(1), "a", 5s, 1s).value());
  EXPECT_GT(watcher.held(request(1), 1s).value(), 0s);
  // A file of a host whose clock is an hour behind, then of one that is an hour ahead.
  for (const auto skew : {-1h, +1h}) {
    std::filesystem::last_write_time(file_of(folder, 1), std::filesystem::file_time_type::clock::now() + skew);
    EXPECT_GT(watcher.held(request(1), 1s).value(), 0s);
  }
  clock.advance(4s);
  EXPECT_GT(watcher.held(request(1), 1s).value(), 0s);
  ASSERT_TRUE(holder.renew(request(1), "a", 5s, 1s).value());
  EXPECT_GT(watcher.held(request(1), 1s).value(), 0s);
  clock.advance(4s);
  EXPECT_GT(watcher.held(request(1), 1s).value(), 0s) << "a renewal was not seen";
  clock.advance(2s);
  EXPECT_EQ(watcher.held(request(1), 1s).value(), 0s);
  EXPECT_TRUE(watcher.take(request(1), "b", 5s, 1s).value());
}

TEST(DirectoryLeases, LeaveNoFilesBehind) {
  const TemporaryDirectory folder;
  ManualClock clock;
  DirectoryLeases leases(folder.path(), clock);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(leases.take(request(i), "a", 5s, 1s).value());
    ASSERT_TRUE(leases.release(request(i), "a", 1s).ok());
  }
  EXPECT_TRUE(files_below(folder.path()).empty());
  ASSERT_TRUE(leases.take(request(1), "dead", 5s, 1s).value());
  (void)leases.held(request(1), 1s);
  clock.advance(6s);
  ASSERT_TRUE(leases.take(request(1), "b", 5s, 1s).value());
  EXPECT_EQ(files_below(folder.path()), std::vector<std::string>{file_of(folder, 1)});
}

TEST(DirectoryLeases, SweepWhatCrashesLeftADayAgoWhenTheyTakeOver) {
  const TemporaryDirectory folder;
  ManualClock clock;
  DirectoryLeases leases(folder.path(), clock);
  ASSERT_TRUE(leases.take(request(1), "dead", 5s, 1s).value());
  const std::string old = file_of(folder, 2) + ".gone-crashed";
  const std::string young = file_of(folder, 3) + ".hedge-0";
  spit(old, "x");
  spit(young, "x");
  std::filesystem::last_write_time(old, std::filesystem::file_time_type::clock::now() - 25h);
  (void)leases.held(request(1), 1s);
  clock.advance(6s);
  ASSERT_TRUE(leases.take(request(1), "b", 5s, 1s).value());
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young));
}

TEST(DirectoryLeases, OfWhichNothingCanBeUnderstoodLapseToo) {
  for (const std::string content : {"", "garbage", "kiln-lease 2\nowner a\n", "kiln-lease 1\nowner a\nlease_ms 99\n"}) {
    const TemporaryDirectory folder;
    ManualClock clock;
    DirectoryLeases leases(folder.path(), clock);
    std::filesystem::create_directory(folder.path("leases"));
    spit(file_of(folder, 1), content);
    EXPECT_FALSE(leases.take(request(1), "a", 1s, 1s).value()) << content;
    clock.advance(6s);
    EXPECT_TRUE(leases.take(request(1), "a", 1s, 1s).value()) << content;
  }
}

TEST(DirectoryLeases, ThatClaimToLastForCenturiesLapseAfterAnHour) {
  const TemporaryDirectory folder;
  ManualClock clock;
  DirectoryLeases leases(folder.path(), clock);
  ASSERT_TRUE(leases.take(request(1), "a", std::chrono::hours(24 * 365 * 20), 1s).value());
  EXPECT_FALSE(leases.take(request(1), "b", 1s, 1s).value());
  clock.advance(61min);
  EXPECT_TRUE(leases.take(request(1), "b", 1s, 1s).value());
}

TEST(DirectoryLeases, AreNotHungByAPipeNorFollowALink) {
  const TemporaryDirectory folder;
  DirectoryLeases leases(folder.path());
  std::filesystem::create_directory(folder.path("leases"));
  ASSERT_EQ(mkfifo(file_of(folder, 1).c_str(), 0666), 0);
  spit(folder.path("elsewhere"), "kept");
  std::filesystem::create_symlink(folder.path("elsewhere"), file_of(folder, 2));
  (void)leases.take(request(1), "a", 1s, 1s);
  EXPECT_FALSE(leases.take(request(2), "a", 1s, 1s).ok());
  EXPECT_FALSE(leases.held(request(2), 1s).ok());
  EXPECT_FALSE(leases.renew(request(2), "a", 1s, 1s).ok());
  EXPECT_EQ(slurp(folder.path("elsewhere")), "kept");
}

TEST(DirectoryLeases, WithoutTheirFolderAreUnavailableAndDoNotMakeIt) {
  const TemporaryDirectory folder;
  DirectoryLeases leases(folder.path("not/there"));
  const auto taken = leases.take(request(1), "a", 1s, 1s);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, Code::Unavailable) << taken.error().message;
  EXPECT_FALSE(leases.probe(1s).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.path("not")));
  EXPECT_EQ(leases.held(request(1), 1s).value(), 0s) << "a folder that is not made yet has no leases";
}

TEST(DirectoryLeases, AreRefusedWhereTheFolderMayNotBeWrittenTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory folder;
  chmod(folder.path().c_str(), 0755);
  EXPECT_EQ(run_in_child([&] {
              if (!become(12345)) return 1;
              DirectoryLeases leases(folder.path());
              const auto taken = leases.take(request(1), "a", 1s, 1s);
              return !taken.ok() && taken.error().code == Code::Refused && !leases.probe(1s).ok() ? 0 : 2;
            }),
            0);
}

TEST(DirectoryLeases, OfOneUserAreTakenOverByAnotherOfTheGroup) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory folder;
  chmod(folder.path().c_str(), 0777);
  EXPECT_EQ(run_in_child([&] {
              umask(077);
              if (!become(12345)) return 1;
              return DirectoryLeases(folder.path()).take(request(1), "a", 100ms, 1s).value() ? 0 : 2;
            }),
            0);
  EXPECT_EQ(run_in_child([&] {
              if (!become(12346)) return 1;
              ManualClock clock;
              DirectoryLeases leases(folder.path(), clock);
              if (leases.take(request(1), "b", 1s, 1s).value()) return 2;
              clock.advance(1s);
              return leases.take(request(1), "b", 1s, 1s).value() ? 0 : 3;
            }),
            0);
}

}  // namespace
}  // namespace kiln::test
