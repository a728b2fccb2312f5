// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_digest_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/files/lock_file.hpp"
#include "base/hash.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/forked.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {
namespace {

using std::chrono::seconds;

// A clock that blocks the first thread that has read a file, and counts the waits of other threads.
class StoppingClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override {
    if (!stopped_.exchange(true)) {
      EXPECT_TRUE(eventually([&] { return may_go_on_.load(); }));
    }
    return system_clock().wall() + seconds(10);  // makes new files look old
  }
  std::chrono::nanoseconds steady() const override { return system_clock().steady(); }
  void sleep(std::chrono::nanoseconds time) const override { system_clock().sleep(time); }
  void wait(Condition& condition, Mutex& mutex, std::chrono::nanoseconds time) const override KILN_REQUIRES(mutex) {
    ++waits_;
    system_clock().wait(condition, mutex, time);
  }

  bool stopped() const { return stopped_; }
  void let_go_on() { may_go_on_ = true; }
  void stop_the_next() {
    may_go_on_ = false;
    stopped_ = false;
  }
  int waits() const { return waits_; }

 private:
  mutable std::atomic<bool> stopped_{false};
  mutable std::atomic<bool> may_go_on_{false};
  mutable std::atomic<int> waits_{0};
};

// A clock that throws std::bad_alloc in the first thread that has read a file, and fails the test if a thread waits.
class FailingClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override {
    if (!failed_.exchange(true)) throw std::bad_alloc();
    return system_clock().wall();
  }
  std::chrono::nanoseconds steady() const override { return system_clock().steady(); }
  void sleep(std::chrono::nanoseconds time) const override { system_clock().sleep(time); }
  void wait(Condition&, Mutex&, std::chrono::nanoseconds) const override {
    throw std::logic_error("a thread waits for a reader that has ended");
  }

 private:
  mutable std::atomic<bool> failed_{false};
};

// A clock by which files are old, and which adds up the time slept.
class SleepCountingClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override { return system_clock().wall() + seconds(10); }
  std::chrono::nanoseconds steady() const override { return system_clock().steady() + slept(); }
  void sleep(std::chrono::nanoseconds time) const override { slept_ += time.count(); }
  std::chrono::nanoseconds slept() const { return std::chrono::nanoseconds(slept_.load()); }

 private:
  mutable std::atomic<std::int64_t> slept_{0};
};

class FileDigestsTest : public ::testing::Test {
 protected:
  FileDigestsTest() {
    chmod(directory_.path().c_str(), 0700);
    write_text(file_, "one");
    clock_.advance(seconds(10));  // makes the file old
  }
  Digest look(FileDigestCache& digests, std::optional<std::chrono::nanoseconds> requested_at = {}) {
    return digests.lookup(file_, requested_at)->digest;
  }
  // Digests the file and saves the digest.
  void remember() {
    FileDigestCache digests(memory_, clock_);
    EXPECT_EQ(look(digests), sha256("one"));
    ASSERT_TRUE(digests.save().has_value());
  }
  // Returns how often a new instance has to read the file.
  std::size_t reads_of_new_instance() {
    FileDigestCache digests(memory_, clock_);
    EXPECT_EQ(look(digests), sha256(read_text(file_)));
    return digests.computed_count();
  }

  TemporaryDirectory directory_;
  const std::string file_ = directory_.path("file");
  const std::string memory_ = directory_.path("memory");
  ManualClock clock_;
};

TEST_F(FileDigestsTest, ReadsFileOncePerProcess) {
  FileDigestCache digests("", clock_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look(digests), sha256("one"));
  EXPECT_EQ(digests.computed_count(), 1u);
}

TEST_F(FileDigestsTest, InstancesShareCacheFile) {
  EXPECT_EQ(reads_of_new_instance(), 1u);
  remember();
  EXPECT_EQ(reads_of_new_instance(), 0u);
}

TEST_F(FileDigestsTest, DoesNotCacheRecentlyChangedFile) {
  ManualClock now;
  FileDigestCache digests(memory_, now);
  write_text(file_, "two");
  EXPECT_EQ(look(digests), sha256("two"));
  EXPECT_EQ(look(digests), sha256("two"));
  EXPECT_EQ(digests.computed_count(), 2u);
  now.advance(seconds(3));
  EXPECT_EQ(look(digests), sha256("two"));
  EXPECT_EQ(look(digests), sha256("two"));
  EXPECT_EQ(digests.computed_count(), 3u);
}

TEST_F(FileDigestsTest, ClockIsNeverAheadOfFileTimes) {
  for (int i = 0; i < 200; ++i) {
    const std::chrono::nanoseconds before = system_clock().wall();
    write_text(file_, std::to_string(i));
    ASSERT_GE(stamp_of(file_.c_str())->changed_ns, before.count());
  }
}

TEST_F(FileDigestsTest, DetectsSameSizeEditAndReplacement) {
  remember();
  FileDigestCache digests(memory_, clock_);
  EXPECT_EQ(look(digests), sha256("one"));
  write_text(file_, "ONE");
  EXPECT_EQ(look(digests), sha256("ONE"));
  write_text(directory_.path("other"), "two");
  std::filesystem::rename(directory_.path("other"), file_);
  EXPECT_EQ(look(digests), sha256("two"));
}

TEST_F(FileDigestsTest, ReturnsNothingForNonFiles) {
  FileDigestCache digests(memory_, clock_);
  EXPECT_FALSE(digests.lookup(directory_.path("none")).has_value());
  EXPECT_FALSE(digests.lookup(directory_.path()).has_value());
  ASSERT_EQ(mkfifo(directory_.path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(digests.lookup(directory_.path("fifo")).has_value());
}

TEST_F(FileDigestsTest, DoesNotReadDevicesPipesOrEndlessFiles) {
  FileDigestCache digests("", clock_);
  for (const char* endless : {"/dev/zero", "/dev/random", "/proc/self/pagemap", "/proc/self/environ"}) {
    std::filesystem::create_symlink(endless, directory_.path("link"));
    EXPECT_FALSE(digests.lookup(directory_.path("link")).has_value()) << endless;
    EXPECT_FALSE(digests.lookup(endless).has_value()) << endless;
    std::filesystem::remove(directory_.path("link"));
  }
  // A sparse file as large as a disk.
  write_text(directory_.path("sparse"), "");
  std::filesystem::resize_file(directory_.path("sparse"), (std::uintmax_t{1} << 30) + 1);
  EXPECT_FALSE(digests.lookup(directory_.path("sparse")).has_value());
  EXPECT_EQ(digests.computed_count(), 0u);
}

TEST_F(FileDigestsTest, IgnoresCorruptCacheFile) {
  remember();
  const std::string good = read_text(memory_);
  for (const std::string& bad : {std::string(), good.substr(0, 8), good.substr(0, good.size() - 1), good + "x",
                                 std::string(good.size(), '\xff'), std::string(good.size(), '\0')}) {
    write_text(memory_, bad);
    EXPECT_EQ(reads_of_new_instance(), 1u) << bad.size();
  }
  // For any flipped bit, a wrong digest is never returned.
  for (std::size_t byte = 0; byte < good.size(); ++byte) {
    if (byte > 16 && good[byte] == 0) continue;  // an empty slot, as nearly all are
    std::string bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ 0x10);
    write_text(memory_, bad);
    FileDigestCache digests(memory_, clock_);
    ASSERT_EQ(look(digests), sha256("one")) << byte;
  }
  write_text(memory_, good);
  EXPECT_EQ(reads_of_new_instance(), 0u);
}

TEST_F(FileDigestsTest, IgnoresCacheFileWritableByOthers) {
  remember();
  chmod(memory_.c_str(), 0666);
  EXPECT_EQ(reads_of_new_instance(), 1u);
  chmod(memory_.c_str(), 0644);
  EXPECT_EQ(reads_of_new_instance(), 0u);
}

TEST_F(FileDigestsTest, KeepsDigestsSavedByAnotherInstance) {
  write_text(directory_.path("second"), "two");
  clock_.advance(seconds(10));
  FileDigestCache one(memory_, clock_);
  FileDigestCache two(memory_, clock_);
  (void)one.lookup(file_);
  (void)two.lookup(directory_.path("second"));
  ASSERT_TRUE(one.save().has_value());
  ASSERT_TRUE(two.save().has_value());
  FileDigestCache later(memory_, clock_);
  EXPECT_EQ(later.lookup(file_)->digest, sha256("one"));
  EXPECT_EQ(later.lookup(directory_.path("second"))->digest, sha256("two"));
  EXPECT_EQ(later.computed_count(), 0u);
}

TEST_F(FileDigestsTest, ConcurrentLookupsReadFileOnce) {
  StoppingClock clock;
  FileDigestCache digests("", clock);
  std::array<std::optional<FileDigestCache::FileDigest>, 4> seen;
  std::thread first([&] { seen[0] = digests.lookup(file_); });
  ASSERT_TRUE(eventually([&] { return clock.stopped(); }));
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < seen.size(); ++i) others.emplace_back([&, i] { seen[i] = digests.lookup(file_); });
  EXPECT_TRUE(eventually([&] { return clock.waits() >= 3; })) << "a thread did not wait";
  EXPECT_EQ(digests.computed_count(), 0u);
  clock.let_go_on();
  first.join();
  for (std::thread& other : others) other.join();
  EXPECT_EQ(digests.computed_count(), 1u);
  for (const auto& one : seen) EXPECT_TRUE(one && one->digest == sha256("one"));
}

TEST_F(FileDigestsTest, OtherLookupsDoNotWaitForRunningRead) {
  StoppingClock clock;
  FileDigestCache digests("", clock);
  for (const char* name : {"known", "other"}) write_text(directory_.path(name), name);
  clock.let_go_on();
  ASSERT_EQ(digests.lookup(directory_.path("known"))->digest, sha256("known"));
  clock.stop_the_next();
  std::thread reader([&] { EXPECT_EQ(digests.lookup(file_)->digest, sha256("one")); });
  ASSERT_TRUE(eventually([&] { return clock.stopped(); }));
  EXPECT_EQ(digests.lookup(directory_.path("known"))->digest, sha256("known"));
  EXPECT_EQ(digests.lookup(directory_.path("other"))->digest, sha256("other"));
  EXPECT_EQ(digests.computed_count(), 2u) << "the first file is still being read";
  EXPECT_EQ(clock.waits(), 0);
  clock.let_go_on();
  reader.join();
  EXPECT_EQ(digests.computed_count(), 3u);
}

TEST_F(FileDigestsTest, OutOfMemoryReaderReleasesWaiters) {
  const FailingClock clock;
  FileDigestCache digests("", clock);
  EXPECT_THROW(digests.lookup(file_), std::bad_alloc);
  EXPECT_EQ(look(digests), sha256("one"));
}

TEST_F(FileDigestsTest, RemovedFileReleasesWaiters) {
  StoppingClock clock;
  FileDigestCache digests("", clock);
  std::thread first([&] { EXPECT_EQ(digests.lookup(file_)->digest, sha256("one")); });
  ASSERT_TRUE(eventually([&] { return clock.stopped(); }));
  std::thread second([&] { EXPECT_FALSE(digests.lookup(file_).has_value()); });
  EXPECT_TRUE(eventually([&] { return clock.waits() >= 1; }));
  std::filesystem::remove(file_);
  clock.let_go_on();
  first.join();
  second.join();
}

TEST_F(FileDigestsTest, AlwaysModeReadsCachedFileAgain) {
  remember();
  FileDigestCache digests(memory_, FileDigestCache::Options{true}, clock_);
  EXPECT_EQ(look(digests), sha256("one"));
  EXPECT_EQ(look(digests), sha256("one"));
  EXPECT_EQ(digests.computed_count(), 2u);
  const auto requested_at = clock_.steady();
  EXPECT_EQ(look(digests, requested_at), sha256("one"));
  EXPECT_EQ(look(digests, requested_at), sha256("one"));
  EXPECT_EQ(digests.computed_count(), 3u) << "one read serves one request";
  clock_.advance(seconds(2));
  EXPECT_EQ(look(digests, requested_at), sha256("one"));
  EXPECT_EQ(digests.computed_count(), 4u) << "a long request reads again";
}

TEST_F(FileDigestsTest, AlwaysModeDetectsWriteThroughSharedMapping) {
  const Fd fd(open(file_.c_str(), O_RDWR | O_CLOEXEC));
  auto* const bytes = static_cast<char*>(mmap(nullptr, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
  ASSERT_NE(bytes, MAP_FAILED);
  FileDigestCache digests("", FileDigestCache::Options{true}, clock_);
  for (const char* text : {"two", "six", "ten"}) {
    std::memcpy(bytes, text, 3);
    EXPECT_EQ(look(digests), sha256(text));
  }
  munmap(bytes, 3);
}

TEST_F(FileDigestsTest, ReplacesCacheFileOfAnotherVersion) {
  remember();
  std::string old = read_text(memory_);
  ASSERT_EQ(old[8], 2) << "the version";
  old[8] = 1;
  write_text(memory_, old);
  EXPECT_EQ(reads_of_new_instance(), 1u);
  remember();
  EXPECT_EQ(read_text(memory_)[8], 2);
  EXPECT_EQ(reads_of_new_instance(), 0u);
}

TEST_F(FileDigestsTest, TruncatedCacheFileDoesNotCrashReaders) {
  std::vector<std::string> files;
  for (int i = 0; i < 40; ++i) {
    files.push_back(directory_.path("file" + std::to_string(i)));
    write_text(files.back(), "text");
  }
  clock_.advance(seconds(10));
  {
    FileDigestCache digests(memory_, clock_);
    for (const std::string& file : files) (void)digests.lookup(file);
    ASSERT_TRUE(digests.save().has_value());
  }
  EXPECT_EQ(run_in_child([&] {
              FileDigestCache digests(memory_, clock_);
              for (int i = 0; i < 20; ++i) (void)digests.lookup(files[static_cast<std::size_t>(i)]);
              if (truncate(memory_.c_str(), 16) != 0) return 1;
              for (const std::string& file : files) {
                if (digests.lookup(file)->digest != sha256("text")) return 2;
              }
              return 0;
            }),
            0);
}

// A separate process with its own cache file in a missing directory, like the first process on a host with an empty
// cache.
class LargeFileTest : public FileDigestsTest {
 protected:
  LargeFileTest() : runtime_("XDG_RUNTIME_DIR", directory_.path().c_str()) {
    write_text(file_, "");
    std::filesystem::resize_file(file_, std::uintmax_t{17} << 20);
  }
  int reads_in_a_child() const {
    return run_in_child([&] {
      ManualClock later;
      later.advance(seconds(10));
      FileDigestCache digests(directory_.path("nowhere/memory"), later);
      return digests.lookup(file_) ? static_cast<int>(digests.computed_count()) : 9;
    });
  }
  ScopedEnv runtime_;
};

TEST_F(LargeFileTest, ConcurrentProcessesReadFileOnce) {
  std::vector<std::unique_ptr<Forked>> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(std::make_unique<Forked>([&](const Forked::Side& side) {
      StoppingClock clock;
      clock.let_go_on();
      FileDigestCache digests(directory_.path("nowhere/memory"), clock);
      side.say("ready");
      (void)side.receive();
      (void)digests.lookup(file_);
      side.say(std::to_string(digests.computed_count()));
    }));
  }
  for (const auto& child : children) ASSERT_EQ(child->line(), "ready");
  for (const auto& child : children) child->say("go");
  int reads = 0;
  for (const auto& child : children) reads += std::atoi(child->line().c_str());
  EXPECT_EQ(reads, 1);
}

TEST_F(LargeFileTest, DigestIsCachedHostLocallyWithoutCacheDirectory) {
  EXPECT_EQ(reads_in_a_child(), 1);
  EXPECT_EQ(reads_in_a_child(), 0);
  EXPECT_FALSE(std::filesystem::exists(directory_.path("nowhere")));
}

// Another process that holds the locks of these files.
Forked holder_of(const std::string& directory, const std::vector<std::string>& files) {
  return Forked([&](const Forked::Side& side) {
    std::filesystem::create_directory(directory);
    chmod(directory.c_str(), 0700);
    const auto locks = LockFile::open(directory + "/digesting");
    std::vector<LockFile::ScopedLock> held;
    for (const std::string& file : files) held.push_back((*locks)->try_lock_scoped(sha256(file)));
    side.say("held");
    (void)side.receive();
  });
}

TEST_F(LargeFileTest, DoesNotWaitForStoppedReader) {
  const Forked holder = holder_of(directory_.path("kiln"), {file_});
  ASSERT_EQ(holder.line(), "held");
  ASSERT_EQ(kill(holder.id(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(waitpid(holder.id(), &status, WUNTRACED), holder.id());
  const SleepCountingClock clock;
  FileDigestCache digests(memory_, clock);
  EXPECT_TRUE(digests.lookup(file_).has_value());
  EXPECT_EQ(clock.slept(), seconds(0));
}

TEST_F(LargeFileTest, WaitsAtMostTenSecondsInTotal) {
  std::vector<std::string> files;
  for (const char* name : {"a", "b", "c"}) {
    files.push_back(directory_.path(name));
    write_text(files.back(), "");
    std::filesystem::resize_file(files.back(), std::uintmax_t{17} << 20);
  }
  const Forked holder = holder_of(directory_.path("kiln"), files);
  ASSERT_EQ(holder.line(), "held");
  const SleepCountingClock clock;
  FileDigestCache digests(memory_, clock);
  for (const std::string& file : files) EXPECT_TRUE(digests.lookup(file).has_value());
  EXPECT_GT(clock.slept(), seconds(0));
  EXPECT_LE(clock.slept(), seconds(10));
}

}  // namespace
}  // namespace kiln::test
