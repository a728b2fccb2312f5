#include "claim/local_claims.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/lock_file.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using Outcome = Claims::Outcome;
using std::chrono::milliseconds;

RequestKey key(int number) { return {sha256("request " + std::to_string(number))}; }

// Stands still, except that sleeping moves it at once.
class StoppedClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override { return steady(); }
  std::chrono::nanoseconds steady() const override { return now_; }
  void sleep(std::chrono::nanoseconds time) const override {
    now_ += time;
    ++sleeps_;
  }
  int sleeps() const { return sleeps_; }

 private:
  mutable std::chrono::nanoseconds now_ = std::chrono::seconds(1'000);
  mutable int sleeps_ = 0;
};

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Mine: return "mine";
    case Outcome::Finished: return "finished";
    case Outcome::TimedOut: return "timed out";
    case Outcome::Unavailable: return "unavailable";
  }
  return "?";
}

// What a fresh process gets without waiting.
std::string outcome_elsewhere(const std::string& folder, int number) {
  const Forked child([&](const Forked::Side& side) {
    side.say(name_of(LocalClaims(folder).acquire(key(number), milliseconds(0)).outcome));
  });
  return child.line();
}

TEST(LocalClaims, MakeNothingBeforeTheFirstAcquireAndThenTheirFolder) {
  const TemporaryDirectory folder;
  LocalClaims claims(folder.path("a/b"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("a")));
  EXPECT_EQ(claims.acquire(key(1), milliseconds(0)).outcome, Outcome::Mine);
  EXPECT_EQ(std::filesystem::file_size(folder.path("a/b/locks")), 0u);
}

TEST(LocalClaims, LeaveOneEmptyFileHoweverManyRequestsThereWere) {
  const TemporaryDirectory folder;
  LocalClaims claims(folder.path());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(claims.acquire(key(i), milliseconds(0)).outcome, Outcome::Mine);
  EXPECT_EQ(list_directory(AT_FDCWD, folder.path().c_str()), std::vector<std::string>{"locks"});
  EXPECT_EQ(std::filesystem::file_size(folder.path("locks")), 0u);
}

TEST(LocalClaims, UseSixtyTwoBitsOfTheKeyAsAnOffsetThatIsNeverNegative) {
  RequestKey highest;
  highest.digest.bytes.fill(0xff);
  EXPECT_EQ(LockFile::byte_of(highest.digest), (off_t{1} << 62) - 1);
  EXPECT_NE(LockFile::byte_of(key(1).digest), LockFile::byte_of(key(2).digest));
  const TemporaryDirectory folder;
  EXPECT_EQ(LocalClaims(folder.path()).acquire(highest, milliseconds(0)).outcome, Outcome::Mine);
}

TEST(LocalClaims, WithZeroWaitNeverSleepAndOtherwiseSleepUpToTheDeadlineOfTheGivenClock) {
  const TemporaryDirectory folder;
  const Forked holder([&](const Forked::Side& side) {
    const auto mine = LocalClaims(folder.path()).acquire(key(1), milliseconds(0));
    side.say(name_of(mine.outcome));
    (void)side.hear();
  });
  ASSERT_EQ(holder.line(), "mine");
  const StoppedClock clock;
  LocalClaims claims(folder.path(), clock);
  EXPECT_EQ(claims.acquire(key(1), milliseconds(0)).outcome, Outcome::TimedOut);
  EXPECT_EQ(claims.acquire(key(1), milliseconds(-5)).outcome, Outcome::TimedOut);
  EXPECT_EQ(clock.sleeps(), 0);
  const auto start = clock.steady();
  const auto answer = claims.acquire(key(1), milliseconds(600'000));
  EXPECT_EQ(answer.outcome, Outcome::TimedOut);
  EXPECT_EQ(answer.reason, "process " + std::to_string(holder.id()) + " is compiling it");
  EXPECT_EQ(clock.steady() - start, milliseconds(600'000));
  EXPECT_GT(clock.sleeps(), 600'000 / 625) << "who waits long looks twice a second …";
  EXPECT_LT(clock.sleeps(), 2000) << "… and not so often that hundreds who wait are felt";
}

TEST(LocalClaims, WaitAsLongAsTheLongestTimeThatCanBeSaid) {
  const TemporaryDirectory folder;
  LocalClaims claims(folder.path());
  auto mine = claims.acquire(key(1), milliseconds::max());
  ASSERT_EQ(mine.outcome, Outcome::Mine);
  std::thread later([&mine] {
    std::this_thread::sleep_for(milliseconds(20));
    mine.claim.reset();
  });
  EXPECT_EQ(claims.acquire(key(1), milliseconds::max()).outcome, Outcome::Finished);
  later.join();
}

TEST(LocalClaims, ExcludeEachOtherAmongThirtyTwoThreadsOnFiveRequests) {
  const TemporaryDirectory folder;
  std::array<int, 5> unguarded{};  // the claims alone keep the threads apart: TSan sees it when they do not
  std::array<std::atomic<int>, 5> inside{};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      LocalClaims claims(folder.path());
      for (int turn = 0; turn < 20;) {
        const int which = (t + turn) % 5;
        const auto answer = claims.acquire(key(which), std::chrono::seconds(30));
        if (answer.outcome == Outcome::Finished) continue;
        if (answer.outcome != Outcome::Mine || ++inside[which] != 1) ++wrong;
        ++unguarded[which];
        std::this_thread::yield();
        --inside[which];
        ++turn;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  int all = 0;
  for (const int count : unguarded) all += count;
  EXPECT_EQ(all, 32 * 20);
}

TEST(LocalClaims, OfAParentAreNotTheChildsAndDestroyingTheCopyReleasesNothing) {
  const TemporaryDirectory folder;
  LocalClaims claims(folder.path());
  auto mine = claims.acquire(key(1), milliseconds(0));
  ASSERT_EQ(mine.outcome, Outcome::Mine);
  const Forked child([&](const Forked::Side& side) {
    side.say(name_of(claims.acquire(key(1), milliseconds(0)).outcome));
    mine.claim.reset();
    side.say(name_of(claims.acquire(key(1), milliseconds(0)).outcome));
    side.say(name_of(claims.acquire(key(2), milliseconds(0)).outcome));
    (void)side.hear();
  });
  EXPECT_EQ(child.line(), "timed out");
  EXPECT_EQ(child.line(), "timed out");
  EXPECT_EQ(child.line(), "mine");
  EXPECT_EQ(outcome_elsewhere(folder.path(), 1), "timed out");
  mine.claim.reset();
  EXPECT_EQ(outcome_elsewhere(folder.path(), 1), "mine");
}

TEST(LocalClaims, OfAChildSurviveTheCopyOfTheParentsClaimOnTheSameRequest) {
  const TemporaryDirectory folder;
  LocalClaims claims(folder.path());
  auto mine = claims.acquire(key(1), milliseconds(0));
  const Forked child([&](const Forked::Side& side) {
    side.say("started");
    (void)side.hear();
    const auto own = claims.acquire(key(1), milliseconds(0));
    mine.claim.reset();
    side.say(name_of(own.outcome));
    (void)side.hear();
  });
  ASSERT_EQ(child.line(), "started");
  mine.claim.reset();
  child.say("take it");
  ASSERT_EQ(child.line(), "mine");
  EXPECT_EQ(outcome_elsewhere(folder.path(), 1), "timed out");
}

TEST(LocalClaims, WorkInAChildThatWasForkedWhileOtherThreadsWereAcquiring) {
  const TemporaryDirectory folder;
  LocalClaims claims(folder.path());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) (void)claims.acquire(key(7), milliseconds(0));
  });
  for (int i = 0; i < 50; ++i) {
    Forked child([&](const Forked::Side& side) { side.say(name_of(claims.acquire(key(1), milliseconds(0)).outcome)); });
    ASSERT_EQ(child.line(), "mine") << i;
    ASSERT_EQ(child.exit_code(), 0);
  }
  stop = true;
  busy.join();
}

TEST(LocalClaims, SurviveAHostProgramThatClosesDescriptorsItDoesNotKnow) {
  const TemporaryDirectory folder;
  Forked child([&](const Forked::Side& side) {
    LocalClaims claims(folder.path());
    (void)claims.acquire(key(1), milliseconds(0));
    for (int fd = 3; fd < 256; ++fd) {
      if (fd != side.in && fd != side.out) close(fd);
    }
    const Fd unrelated(open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));  // likely gets the number that was ours
    const auto again = claims.acquire(key(1), milliseconds(0));
    side.say(std::string(name_of(again.outcome)) + again.reason);
    (void)side.hear();
  });
  ASSERT_EQ(child.line(), "mine");
  EXPECT_EQ(outcome_elsewhere(folder.path(), 1), "timed out");
}

TEST(LocalClaims, GoOnInANewFileWhenTheFolderIsRemovedUnderThem) {
  const TemporaryDirectory folder;
  LocalClaims claims(folder.path("v1"));
  const auto old = claims.acquire(key(1), milliseconds(0));
  std::filesystem::remove_all(folder.path("v1"));
  EXPECT_EQ(claims.acquire(key(1), milliseconds(0)).outcome, Outcome::Mine);
}

TEST(LocalClaims, OfOneFolderUnderTwoNamesAreTheSameClaims) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder.path("real"));
  std::filesystem::create_symlink(folder.path("real"), folder.path("alias"));
  LocalClaims one(folder.path("real"));
  LocalClaims two(folder.path("alias"));
  const auto mine = one.acquire(key(1), milliseconds(0));
  EXPECT_EQ(two.acquire(key(1), milliseconds(0)).outcome, Outcome::TimedOut);
  EXPECT_EQ(outcome_elsewhere(folder.path("real"), 1), "timed out");
}

TEST(LocalClaims, SayWhyTheyAreUnavailable) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path("file")) << "x";
  mkfifo((folder.path("locks")).c_str(), 0600);
  std::filesystem::create_directory(folder.path("linked"));
  std::filesystem::create_symlink(folder.path("file"), folder.path("linked/locks"));
  for (const std::string& path : {std::string(), folder.path("file/below"), folder.path(), folder.path("linked")}) {
    const auto answer = LocalClaims(path).acquire(key(1), std::chrono::seconds(10));
    EXPECT_EQ(answer.outcome, Outcome::Unavailable) << path;
    EXPECT_FALSE(answer.reason.empty()) << path;
  }
}

TEST(LocalClaims, AreUnavailableInAFolderThatTheUserMayNotWriteTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory folder;
  chmod(folder.path().c_str(), 0755);
  const auto as_another_user = [&](const std::string& path) {
    const Forked child([&](const Forked::Side& side) {
      if (setgid(12345) != 0 || setuid(12345) != 0) _exit(1);
      const auto answer = LocalClaims(path).acquire(key(1), std::chrono::seconds(10));
      side.say(std::string(name_of(answer.outcome)) + ": " + answer.reason);
    });
    return child.line();
  };
  EXPECT_EQ(as_another_user(folder.path()), "unavailable: cannot open " + folder.path() + "/locks: Permission denied");
  EXPECT_EQ(as_another_user(folder.path("v1")),
            "unavailable: cannot create " + folder.path() + "/v1: Permission denied");
  const auto mine = LocalClaims(folder.path()).acquire(key(1), milliseconds(0));  // root's own file is there now
  EXPECT_EQ(as_another_user(folder.path()), "unavailable: cannot open " + folder.path() + "/locks: Permission denied");
}

TEST(LocalClaims, AreUnavailableWhereTheFileSystemHasNoLocks) {
  const TemporaryDirectory folder;
  const std::string command =
      "ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o /dev/null -e trace=fcntl -e "
      "inject=fcntl:error=ENOLCK " KILN_CLAIM_ONCE " " +
      folder.path();
  FILE* run = popen(command.c_str(), "r");
  ASSERT_NE(run, nullptr);
  char line[512] = {};
  ASSERT_NE(fgets(line, sizeof line, run), nullptr) << command;
  pclose(run);
  EXPECT_EQ(std::string(line), std::to_string(static_cast<int>(Outcome::Unavailable)) + " cannot lock " +
                                   folder.path() + "/locks: No locks available\n");
}

TEST(ClaimsFolder, IsBesideALocalCacheThatCanBeWrittenToAndIsNotMade) {
  const TemporaryDirectory folder;
  EXPECT_EQ(claims_folder(folder.path()), folder.path("v1"));
  EXPECT_EQ(claims_folder(folder.path("not/yet")), folder.path("not/yet/v1"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ClaimsFolder, IsPrivateToTheHostWhereTheCacheCannotBeWrittenTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory folder;
  chmod(folder.path().c_str(), 0755);
  std::filesystem::create_directory(folder.path("run"));
  ASSERT_EQ(chown((folder.path("run")).c_str(), 12345, 12345), 0);
  const Forked child([&](const Forked::Side& side) {
    setenv("XDG_RUNTIME_DIR", (folder.path("run")).c_str(), 1);
    if (setgid(12345) != 0 || setuid(12345) != 0) _exit(1);
    side.say(claims_folder(folder.path()));
    side.say(name_of(LocalClaims(claims_folder(folder.path())).acquire(key(1), milliseconds(0)).outcome));
  });
  EXPECT_EQ(child.line(), folder.path("run/kiln"));
  EXPECT_EQ(child.line(), "mine");
}

}  // namespace
}  // namespace kiln::test
