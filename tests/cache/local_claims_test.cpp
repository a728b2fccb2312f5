// SPDX-License-Identifier: Apache-2.0
#include "cache/local_claims.hpp"

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

#include "base/files/files.hpp"
#include "base/files/lock_file.hpp"
#include "base/hash.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {
namespace {

using Outcome = Claims::Outcome;
using std::chrono::milliseconds;

RequestKey key(int number) { return {sha256("request " + std::to_string(number))}; }

// A clock that only sleeping advances.
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
    case Outcome::Acquired: return "mine";
    case Outcome::ReleasedByOther: return "finished";
    case Outcome::TimedOut: return "timed out";
    case Outcome::Unavailable: return "unavailable";
  }
  return "?";
}

// Returns the result of a non-blocking acquire in a new process.
std::string outcome_elsewhere(const std::string& directory, int number) {
  const Forked child([&](const Forked::Side& side) {
    side.say(name_of(LocalClaims(directory).acquire(key(number), milliseconds(0), {}).outcome));
  });
  return child.line();
}

TEST(LocalClaims, FirstAcquireCreatesDirectory) {
  const TemporaryDirectory directory;
  LocalClaims claims(directory.path("a/b"));
  EXPECT_FALSE(std::filesystem::exists(directory.path("a")));
  EXPECT_EQ(claims.acquire(key(1), milliseconds(0), {}).outcome, Outcome::Acquired);
  EXPECT_EQ(std::filesystem::file_size(directory.path("a/b/locks")), 0u);
}

TEST(LocalClaims, AllRequestsShareOneEmptyFile) {
  const TemporaryDirectory directory;
  LocalClaims claims(directory.path());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(claims.acquire(key(i), milliseconds(0), {}).outcome, Outcome::Acquired);
  EXPECT_EQ(list_directory(AT_FDCWD, directory.path().c_str()), std::vector<std::string>{"locks"});
  EXPECT_EQ(std::filesystem::file_size(directory.path("locks")), 0u);
}

TEST(LocalClaims, OffsetUses62BitsOfKeyAndIsNeverNegative) {
  RequestKey highest;
  highest.digest.bytes.fill(0xff);
  EXPECT_EQ(LockFile::lock_offset(highest.digest), (off_t{1} << 62) - 1);
  EXPECT_NE(LockFile::lock_offset(key(1).digest), LockFile::lock_offset(key(2).digest));
  const TemporaryDirectory directory;
  EXPECT_EQ(LocalClaims(directory.path()).acquire(highest, milliseconds(0), {}).outcome, Outcome::Acquired);
}

TEST(LocalClaims, ZeroWaitNeverSleepsAndOtherwiseSleepsUntilDeadline) {
  const TemporaryDirectory directory;
  const Forked holder([&](const Forked::Side& side) {
    const auto mine = LocalClaims(directory.path()).acquire(key(1), milliseconds(0), {});
    side.say(name_of(mine.outcome));
    (void)side.receive();
  });
  ASSERT_EQ(holder.line(), "mine");
  const StoppedClock clock;
  LocalClaims claims(directory.path(), clock);
  EXPECT_EQ(claims.acquire(key(1), milliseconds(0), {}).outcome, Outcome::TimedOut);
  EXPECT_EQ(claims.acquire(key(1), milliseconds(-5), {}).outcome, Outcome::TimedOut);
  EXPECT_EQ(clock.sleeps(), 0);
  const auto start = clock.steady();
  const auto answer = claims.acquire(key(1), milliseconds(600'000), {});
  EXPECT_EQ(answer.outcome, Outcome::TimedOut);
  EXPECT_EQ(answer.reason, "process " + std::to_string(holder.id()) + " is compiling it");
  EXPECT_EQ(clock.steady() - start, milliseconds(600'000));
  EXPECT_GT(clock.sleeps(), 600'000 / 625) << "a long wait polls at least about twice a second";
  EXPECT_LT(clock.sleeps(), 2000) << "and rarely enough that hundreds of waiters cost little";
  RequestContext background;
  background.urgent = Urgency(false);
  const int before = clock.sleeps();
  EXPECT_EQ(claims.acquire(key(1), milliseconds(600'000), background).outcome, Outcome::TimedOut);
  EXPECT_LT(clock.sleeps() - before, 600) << "less than once a second while no caller waits";
}

TEST(LocalClaims, SupportsMaximumWait) {
  const TemporaryDirectory directory;
  LocalClaims claims(directory.path());
  auto mine = claims.acquire(key(1), milliseconds::max(), {});
  ASSERT_EQ(mine.outcome, Outcome::Acquired);
  std::thread later([&mine] {
    std::this_thread::sleep_for(milliseconds(20));
    mine.claim.reset();
  });
  EXPECT_EQ(claims.acquire(key(1), milliseconds::max(), {}).outcome, Outcome::ReleasedByOther);
  later.join();
}

TEST(LocalClaims, ExcludeEachOtherAmong32ThreadsOnFiveRequests) {
  const TemporaryDirectory directory;
  std::array<int, 5> unguarded{};  // only the claims synchronize the threads; TSan reports it if they do not
  std::array<std::atomic<int>, 5> inside{};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      LocalClaims claims(directory.path());
      for (int turn = 0; turn < 20;) {
        const int which = (t + turn) % 5;
        const auto answer = claims.acquire(key(which), std::chrono::seconds(30), {});
        if (answer.outcome == Outcome::ReleasedByOther) continue;
        if (answer.outcome != Outcome::Acquired || ++inside[which] != 1) ++wrong;
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

TEST(LocalClaims, ChildDoesNotInheritClaimsAndDestroyingCopyReleasesNothing) {
  const TemporaryDirectory directory;
  LocalClaims claims(directory.path());
  auto mine = claims.acquire(key(1), milliseconds(0), {});
  ASSERT_EQ(mine.outcome, Outcome::Acquired);
  const Forked child([&](const Forked::Side& side) {
    side.say(name_of(claims.acquire(key(1), milliseconds(0), {}).outcome));
    mine.claim.reset();
    side.say(name_of(claims.acquire(key(1), milliseconds(0), {}).outcome));
    side.say(name_of(claims.acquire(key(2), milliseconds(0), {}).outcome));
    (void)side.receive();
  });
  EXPECT_EQ(child.line(), "timed out");
  EXPECT_EQ(child.line(), "timed out");
  EXPECT_EQ(child.line(), "mine");
  EXPECT_EQ(outcome_elsewhere(directory.path(), 1), "timed out");
  mine.claim.reset();
  EXPECT_EQ(outcome_elsewhere(directory.path(), 1), "mine");
}

TEST(LocalClaims, ChildClaimSurvivesCopyOfParentClaim) {
  const TemporaryDirectory directory;
  LocalClaims claims(directory.path());
  auto mine = claims.acquire(key(1), milliseconds(0), {});
  const Forked child([&](const Forked::Side& side) {
    side.say("started");
    (void)side.receive();
    const auto own = claims.acquire(key(1), milliseconds(0), {});
    mine.claim.reset();
    side.say(name_of(own.outcome));
    (void)side.receive();
  });
  ASSERT_EQ(child.line(), "started");
  mine.claim.reset();
  child.say("take it");
  ASSERT_EQ(child.line(), "mine");
  EXPECT_EQ(outcome_elsewhere(directory.path(), 1), "timed out");
}

TEST(LocalClaims, WorkInChildForkedDuringAcquires) {
  const TemporaryDirectory directory;
  LocalClaims claims(directory.path());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) (void)claims.acquire(key(7), milliseconds(0), {});
  });
  for (int i = 0; i < 50; ++i) {
    Forked child(
        [&](const Forked::Side& side) { side.say(name_of(claims.acquire(key(1), milliseconds(0), {}).outcome)); });
    ASSERT_EQ(child.line(), "mine") << i;
    ASSERT_EQ(child.exit_code(), 0);
  }
  stop = true;
  busy.join();
}

TEST(LocalClaims, SurviveHostThatClosesUnknownDescriptors) {
  const TemporaryDirectory directory;
  Forked child([&](const Forked::Side& side) {
    LocalClaims claims(directory.path());
    (void)claims.acquire(key(1), milliseconds(0), {});
    for (int fd = 3; fd < 256; ++fd) {
      if (fd != side.in && fd != side.out) close(fd);
    }
    // Likely gets the descriptor number of the lock file.
    const Fd unrelated(open(directory.path().c_str(), O_RDONLY | O_CLOEXEC));
    const auto again = claims.acquire(key(1), milliseconds(0), {});
    side.say(std::string(name_of(again.outcome)) + again.reason);
    (void)side.receive();
  });
  ASSERT_EQ(child.line(), "mine");
  EXPECT_EQ(outcome_elsewhere(directory.path(), 1), "timed out");
}

TEST(LocalClaims, ContinueInNewFileIfDirectoryIsRemoved) {
  const TemporaryDirectory directory;
  LocalClaims claims(directory.path("v1"));
  const auto old = claims.acquire(key(1), milliseconds(0), {});
  std::filesystem::remove_all(directory.path("v1"));
  EXPECT_EQ(claims.acquire(key(1), milliseconds(0), {}).outcome, Outcome::Acquired);
}

TEST(LocalClaims, TwoPathsOfOneDirectoryShareClaims) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path("real"));
  std::filesystem::create_symlink(directory.path("real"), directory.path("alias"));
  LocalClaims one(directory.path("real"));
  LocalClaims two(directory.path("alias"));
  const auto mine = one.acquire(key(1), milliseconds(0), {});
  EXPECT_EQ(two.acquire(key(1), milliseconds(0), {}).outcome, Outcome::TimedOut);
  EXPECT_EQ(outcome_elsewhere(directory.path("real"), 1), "timed out");
}

TEST(LocalClaims, ReportReasonIfUnavailable) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path("file")) << "x";
  mkfifo((directory.path("locks")).c_str(), 0600);
  std::filesystem::create_directory(directory.path("linked"));
  std::filesystem::create_symlink(directory.path("file"), directory.path("linked/locks"));
  for (const std::string& path :
       {std::string(), directory.path("file/below"), directory.path(), directory.path("linked")}) {
    const auto answer = LocalClaims(path).acquire(key(1), std::chrono::seconds(10), {});
    EXPECT_EQ(answer.outcome, Outcome::Unavailable) << path;
    EXPECT_FALSE(answer.reason.empty()) << path;
  }
}

TEST(LocalClaims, AreUnavailableInUnwritableDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory directory;
  chmod(directory.path().c_str(), 0755);
  const auto as_another_user = [&](const std::string& path) {
    const Forked child([&](const Forked::Side& side) {
      if (setgid(12345) != 0 || setuid(12345) != 0) _exit(1);
      const auto answer = LocalClaims(path).acquire(key(1), std::chrono::seconds(10), {});
      side.say(std::string(name_of(answer.outcome)) + ": " + answer.reason);
    });
    return child.line();
  };
  EXPECT_EQ(as_another_user(directory.path()),
            "unavailable: cannot open " + directory.path() + "/locks: Permission denied");
  EXPECT_EQ(as_another_user(directory.path("v1")),
            "unavailable: cannot create " + directory.path() + "/v1: Permission denied");
  const auto mine = LocalClaims(directory.path()).acquire(key(1), milliseconds(0), {});  // the file of root exists now
  EXPECT_EQ(as_another_user(directory.path()),
            "unavailable: cannot open " + directory.path() + "/locks: Permission denied");
}

TEST(LocalClaims, AreUnavailableWithoutFileSystemLocks) {
  const TemporaryDirectory directory;
  const std::string command =
      "ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o /dev/null -e trace=fcntl -e "
      "inject=fcntl:error=ENOLCK " KILN_CLAIM_ONCE " " +
      directory.path();
  FILE* run = popen(command.c_str(), "r");
  ASSERT_NE(run, nullptr);
  char line[512] = {};
  ASSERT_NE(fgets(line, sizeof line, run), nullptr) << command;
  pclose(run);
  EXPECT_EQ(std::string(line), std::to_string(static_cast<int>(Outcome::Unavailable)) + " cannot lock " +
                                   directory.path() + "/locks: No locks available\n");
}

TEST(ClaimsFolder, IsInWritableLocalCacheAndIsNotCreated) {
  const TemporaryDirectory directory;
  EXPECT_EQ(claims_directory(directory.path()), directory.path("v1"));
  EXPECT_EQ(claims_directory(directory.path("not/yet")), directory.path("not/yet/v1"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(ClaimsFolder, IsPrivateToHostIfCacheIsNotWritable) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory directory;
  chmod(directory.path().c_str(), 0755);
  std::filesystem::create_directory(directory.path("run"));
  ASSERT_EQ(chown((directory.path("run")).c_str(), 12345, 12345), 0);
  const Forked child([&](const Forked::Side& side) {
    setenv("XDG_RUNTIME_DIR", (directory.path("run")).c_str(), 1);
    if (setgid(12345) != 0 || setuid(12345) != 0) _exit(1);
    side.say(claims_directory(directory.path()));
    side.say(name_of(LocalClaims(claims_directory(directory.path())).acquire(key(1), milliseconds(0), {}).outcome));
  });
  EXPECT_EQ(child.line(), directory.path("run/kiln"));
  EXPECT_EQ(child.line(), "mine");
}

}  // namespace
}  // namespace kiln::test
