#include "base/file_digests.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/hash.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/files.hpp"
#include "support/forked.hpp"
#include "support/manual_clock.hpp"
#include "support/temporary_directory.hpp"
#include "support/variable.hpp"

namespace kiln::test {
namespace {

using std::chrono::seconds;

// A clock at which the first to have read a file stops, and by which others wait for him.
class StoppingClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override {
    if (!stopped_.exchange(true)) {
      EXPECT_TRUE(eventually([&] { return may_go_on_.load(); }));
    }
    return system_clock().wall() + seconds(10);  // what is new is old by now
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

// A clock at which memory runs out for the first who has read a file, and by which nobody waits.
class FailingClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override {
    if (!failed_.exchange(true)) throw std::bad_alloc();
    return system_clock().wall();
  }
  std::chrono::nanoseconds steady() const override { return system_clock().steady(); }
  void sleep(std::chrono::nanoseconds time) const override { system_clock().sleep(time); }
  void wait(Condition&, Mutex&, std::chrono::nanoseconds) const override {
    throw std::logic_error("it waits for somebody who is gone");
  }

 private:
  mutable std::atomic<bool> failed_{false};
};

class FileDigestsTest : public ::testing::Test {
 protected:
  FileDigestsTest() {
    chmod(folder_.path().c_str(), 0700);
    spit(file_, "one");
    clock_.advance(seconds(10));  // the file is old by now
  }
  Digest look(FileDigests& digests) { return digests.look(file_)->digest; }
  // Learns the file and saves it.
  void remember() {
    FileDigests digests(memory_, clock_);
    EXPECT_EQ(look(digests), sha256("one"));
    ASSERT_TRUE(digests.save().ok());
  }
  // How often a new instance has to read the file.
  std::size_t reads_anew() {
    FileDigests digests(memory_, clock_);
    EXPECT_EQ(look(digests), sha256(slurp(file_)));
    return digests.digested();
  }

  TemporaryDirectory folder_;
  const std::string file_ = folder_.path("file");
  const std::string memory_ = folder_.path("memory");
  ManualClock clock_;
};

TEST_F(FileDigestsTest, ReadAFileOnceWithinAProcess) {
  FileDigests digests("", clock_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look(digests), sha256("one"));
  EXPECT_EQ(digests.digested(), 1u);
}

TEST_F(FileDigestsTest, RememberBetweenInstancesThroughTheMemoryFile) {
  EXPECT_EQ(reads_anew(), 1u);
  remember();
  EXPECT_EQ(reads_anew(), 0u);
}

TEST_F(FileDigestsTest, DoNotTrustAYoungFile) {
  ManualClock now;
  FileDigests digests(memory_, now);
  spit(file_, "two");
  EXPECT_EQ(look(digests), sha256("two"));
  EXPECT_EQ(look(digests), sha256("two"));
  EXPECT_EQ(digests.digested(), 2u);
  now.advance(seconds(3));
  EXPECT_EQ(look(digests), sha256("two"));
  EXPECT_EQ(look(digests), sha256("two"));
  EXPECT_EQ(digests.digested(), 3u);
}

TEST_F(FileDigestsTest, AreByAClockThatIsNeverAheadOfTheTimesOfFiles) {
  for (int i = 0; i < 200; ++i) {
    const std::chrono::nanoseconds before = system_clock().wall();
    spit(file_, std::to_string(i));
    ASSERT_GE(stamp_of(file_.c_str())->changed_ns, before.count());
  }
}

TEST_F(FileDigestsTest, SeeAnEditOfTheSameSizeAndAReplacement) {
  remember();
  FileDigests digests(memory_, clock_);
  EXPECT_EQ(look(digests), sha256("one"));
  spit(file_, "ONE");
  EXPECT_EQ(look(digests), sha256("ONE"));
  spit(folder_.path("other"), "two");
  std::filesystem::rename(folder_.path("other"), file_);
  EXPECT_EQ(look(digests), sha256("two"));
}

TEST_F(FileDigestsTest, SayNothingOfWhatIsNoFile) {
  FileDigests digests(memory_, clock_);
  EXPECT_FALSE(digests.look(folder_.path("none")).has_value());
  EXPECT_FALSE(digests.look(folder_.path()).has_value());
  ASSERT_EQ(mkfifo(folder_.path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(digests.look(folder_.path("fifo")).has_value());
}

TEST_F(FileDigestsTest, ReadNoDeviceNoPipeAndNothingWithoutAnEnd) {
  FileDigests digests("", clock_);
  for (const char* endless : {"/dev/zero", "/dev/random", "/proc/self/pagemap", "/proc/self/environ"}) {
    std::filesystem::create_symlink(endless, folder_.path("link"));
    EXPECT_FALSE(digests.look(folder_.path("link")).has_value()) << endless;
    EXPECT_FALSE(digests.look(endless).has_value()) << endless;
    std::filesystem::remove(folder_.path("link"));
  }
  // A file that claims to be as large as the disk is.
  spit(folder_.path("sparse"), "");
  std::filesystem::resize_file(folder_.path("sparse"), (std::uintmax_t{1} << 30) + 1);
  EXPECT_FALSE(digests.look(folder_.path("sparse")).has_value());
  EXPECT_EQ(digests.digested(), 0u);
}

TEST_F(FileDigestsTest, IgnoreADamagedMemoryFile) {
  remember();
  const std::string good = slurp(memory_);
  for (const std::string& bad : {std::string(), good.substr(0, 8), good.substr(0, good.size() - 1), good + "x",
                                 std::string(good.size(), '\xff'), std::string(good.size(), '\0')}) {
    spit(memory_, bad);
    EXPECT_EQ(reads_anew(), 1u) << bad.size();
  }
  // Whichever bit flips, a digest that is not the file's is never given.
  for (std::size_t byte = 0; byte < good.size(); ++byte) {
    if (byte > 16 && good[byte] == 0) continue;  // an empty slot, as nearly all are
    std::string bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ 0x10);
    spit(memory_, bad);
    FileDigests digests(memory_, clock_);
    ASSERT_EQ(look(digests), sha256("one")) << byte;
  }
  spit(memory_, good);
  EXPECT_EQ(reads_anew(), 0u);
}

TEST_F(FileDigestsTest, IgnoreAMemoryFileThatOthersCanWriteTo) {
  remember();
  chmod(memory_.c_str(), 0666);
  EXPECT_EQ(reads_anew(), 1u);
  chmod(memory_.c_str(), 0644);
  EXPECT_EQ(reads_anew(), 0u);
}

TEST_F(FileDigestsTest, KeepWhatAnotherInstanceSavedSince) {
  spit(folder_.path("second"), "two");
  clock_.advance(seconds(10));
  FileDigests one(memory_, clock_);
  FileDigests two(memory_, clock_);
  (void)one.look(file_);
  (void)two.look(folder_.path("second"));
  ASSERT_TRUE(one.save().ok());
  ASSERT_TRUE(two.save().ok());
  FileDigests later(memory_, clock_);
  EXPECT_EQ(later.look(file_)->digest, sha256("one"));
  EXPECT_EQ(later.look(folder_.path("second"))->digest, sha256("two"));
  EXPECT_EQ(later.digested(), 0u);
}

TEST_F(FileDigestsTest, ReadAFileForOneAtATimeAndTheOthersFindWhatHeLearnt) {
  StoppingClock clock;
  FileDigests digests("", clock);
  std::array<std::optional<FileDigests::Seen>, 4> seen;
  std::thread first([&] { seen[0] = digests.look(file_); });
  ASSERT_TRUE(eventually([&] { return clock.stopped(); }));
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < seen.size(); ++i) others.emplace_back([&, i] { seen[i] = digests.look(file_); });
  EXPECT_TRUE(eventually([&] { return clock.waits() >= 3; })) << "somebody did not wait";
  EXPECT_EQ(digests.digested(), 0u);
  clock.let_go_on();
  first.join();
  for (std::thread& other : others) other.join();
  EXPECT_EQ(digests.digested(), 1u);
  for (const auto& one : seen) EXPECT_TRUE(one && one->digest == sha256("one"));
}

TEST_F(FileDigestsTest, NeitherAHitNorAnotherFileWaitsForOneThatIsBeingRead) {
  StoppingClock clock;
  FileDigests digests("", clock);
  for (const char* name : {"known", "other"}) spit(folder_.path(name), name);
  clock.let_go_on();
  ASSERT_EQ(digests.look(folder_.path("known"))->digest, sha256("known"));
  clock.stop_the_next();
  std::thread reader([&] { EXPECT_EQ(digests.look(file_)->digest, sha256("one")); });
  ASSERT_TRUE(eventually([&] { return clock.stopped(); }));
  EXPECT_EQ(digests.look(folder_.path("known"))->digest, sha256("known"));
  EXPECT_EQ(digests.look(folder_.path("other"))->digest, sha256("other"));
  EXPECT_EQ(digests.digested(), 2u) << "the first is not done yet";
  EXPECT_EQ(clock.waits(), 0);
  clock.let_go_on();
  reader.join();
  EXPECT_EQ(digests.digested(), 3u);
}

TEST_F(FileDigestsTest, NobodyWaitsForOneWhoseMemoryRanOutWhileHeRead) {
  const FailingClock clock;
  FileDigests digests("", clock);
  EXPECT_THROW(digests.look(file_), std::bad_alloc);
  EXPECT_EQ(look(digests), sha256("one"));
}

TEST_F(FileDigestsTest, OfAFileThatGoesAwayWhileOthersWaitForItsReaderNobodyHangs) {
  StoppingClock clock;
  FileDigests digests("", clock);
  std::thread first([&] { EXPECT_EQ(digests.look(file_)->digest, sha256("one")); });
  ASSERT_TRUE(eventually([&] { return clock.stopped(); }));
  std::thread second([&] { EXPECT_FALSE(digests.look(file_).has_value()); });
  EXPECT_TRUE(eventually([&] { return clock.waits() >= 1; }));
  std::filesystem::remove(file_);
  clock.let_go_on();
  first.join();
  second.join();
}

// A process of its own, with its own memory file in a folder that is not there, as the first of a cold host's.
class LargeFileTest : public FileDigestsTest {
 protected:
  LargeFileTest() : runtime_("XDG_RUNTIME_DIR", folder_.path().c_str()) {
    spit(file_, "");
    std::filesystem::resize_file(file_, std::uintmax_t{17} << 20);
  }
  int reads_in_a_child() const {
    return run_in_child([&] {
      ManualClock later;
      later.advance(seconds(10));
      FileDigests digests(folder_.path("nowhere/memory"), later);
      return digests.look(file_) ? static_cast<int>(digests.digested()) : 9;
    });
  }
  Variable runtime_;
};

TEST_F(LargeFileTest, IsReadOnceForAllProcessesThatComeAtOnce) {
  std::vector<std::unique_ptr<Forked>> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(std::make_unique<Forked>([&](const Forked::Side& side) {
      StoppingClock clock;
      clock.let_go_on();
      FileDigests digests(folder_.path("nowhere/memory"), clock);
      side.say("ready");
      (void)side.hear();
      (void)digests.look(file_);
      side.say(std::to_string(digests.digested()));
    }));
  }
  for (const auto& child : children) ASSERT_EQ(child->line(), "ready");
  for (const auto& child : children) child->say("go");
  int reads = 0;
  for (const auto& child : children) reads += std::atoi(child->line().c_str());
  EXPECT_EQ(reads, 1);
}

TEST_F(LargeFileTest, IsRememberedOnTheHostWhereTheCacheHasNoFolderYet) {
  EXPECT_EQ(reads_in_a_child(), 1);
  EXPECT_EQ(reads_in_a_child(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("nowhere")));
}

}  // namespace
}  // namespace kiln::test
