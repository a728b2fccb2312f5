// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/process/system_info.hpp"
#include "engine/status_directory.hpp"
#include "engine/status_writer.hpp"
#include "session/config/config.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

ProcessStatus some_status() {
  ProcessStatus status;
  status.pid = static_cast<std::uint32_t>(getpid());
  status.started = process_start_time(getpid()).value_or(0);
  status.name_space = pid_namespace_id();
  status.command = "./app --jobs 2";
  status.since = 10s;
  status.written = 12s;
  status.snapshot.totals.submitted = 3;
  status.snapshot.totals.compiled = 1;
  status.snapshot.totals.pending = 1;
  status.snapshot.totals.failed = 1;
  status.snapshot.waiters = 2;
  status.snapshot.units = {
      {{"pip", "cuda", "sm_90", UnitStatus::State::Running, Origin::Compiled, 120.5, ""}, 2},
      {{"bad", "cuda", "sm_90", UnitStatus::State::Failed, Origin::Compiled, 3, "unit 'bad' does not compile"}, 0},
  };
  return status;
}

// Updates the checksum, so that the fields after it are checked.
std::string resealed(std::string file) {
  BinaryWriter sum;
  sum.u64(xxh3(as_bytes(std::string_view(file).substr(20))));
  return file.replace(12, 8, sum.bytes());
}

class StatusDirectory : public testing::Test {
 protected:
  void SetUp() override { fs::permissions(directory_.path(), fs::perms::owner_all); }
  std::string write(const std::string& name, const std::string& bytes, mode_t mode = 0600) {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), mode);
    return path;
  }
  StatusListing listing() { return read_status_directory(directory_.path()).value(); }
  std::string problem_with(const std::string& bytes, mode_t mode = 0600) {
    write("1-a.status", bytes, mode);
    const StatusListing listed = listing();
    EXPECT_TRUE(listed.processes.empty());
    return listed.problems.empty() ? "none" : listed.problems.front();
  }

  TemporaryDirectory directory_;
};

TEST(StatusFormat, RoundTrips) {
  const ProcessStatus status = some_status();
  const auto read = decode_status(encode(status));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(encode(*read), encode(status));
  EXPECT_EQ(read->command, "./app --jobs 2");
  EXPECT_EQ(read->snapshot.waiters, 2u);
  ASSERT_EQ(read->snapshot.units.size(), 2u);
  EXPECT_EQ(read->snapshot.units[0].waiters, 2u);
  EXPECT_EQ(read->snapshot.units[1].status.error, "unit 'bad' does not compile");
}

TEST(StatusFormat, OtherVersionIsRejected) {
  for (const char version : {'\0', '\2'}) {
    std::string file = encode(some_status());
    file[8] = version;
    const auto read = decode_status(file);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::Unsupported);
    EXPECT_NE(read.error().message.find("another version of kiln"), std::string::npos);
  }
}

TEST(StatusFormat, ChangedOrTruncatedFileIsRejected) {
  const std::string file = encode(some_status());
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string other = file;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(decode_status(other)) << i;
    EXPECT_FALSE(decode_status(file.substr(0, i))) << i;
  }
  EXPECT_FALSE(decode_status(file + '\0'));
  EXPECT_FALSE(decode_status(resealed(file + '\0')));
}

TEST(StatusFormat, SizeIsBounded) {
  ProcessStatus status = some_status();
  status.command = std::string(100'000, 'x');
  const std::string long_name = std::string(255, 'a') + "é" + std::string(1000, 'b');
  status.snapshot.units.assign(
      1000,
      {{long_name, long_name, long_name, UnitStatus::State::Failed, Origin::Compiled, 1, std::string(4000, 'e')}, 0});
  const std::string file = encode(status);
  EXPECT_LE(file.size(), ProcessStatus::kMaxBytes);
  const auto read = decode_status(file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->snapshot.units.size(), ProcessStatus::kMaxUnits);
  EXPECT_EQ(read->snapshot.units[0].status.unit, std::string(255, 'a')) << "not truncated within a character";
  EXPECT_EQ(read->snapshot.units[0].status.kind, std::string(64, 'a'));
}

TEST_F(StatusDirectory, ListsLiveProcesses) {
  write("1-a.status", encode(some_status()));
  write("notes.txt", "not one of ours");
  const StatusListing listed = listing();
  ASSERT_EQ(listed.processes.size(), 1u);
  EXPECT_EQ(listed.processes[0].pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_TRUE(listed.problems.empty());
}

TEST_F(StatusDirectory, MissingDirectoryIsEmpty) {
  const auto listed = read_status_directory(directory_.path() + "/nothing");
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_TRUE(listed->processes.empty());
}

TEST_F(StatusDirectory, RemovesFilesOfDeadProcesses) {
  ProcessStatus status = some_status();
  ++status.started;  // another process had this id
  const std::string path = write("1-a.status", encode(status));
  EXPECT_TRUE(listing().processes.empty());
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(StatusDirectory, RemovesStaleTemporaryFilesSilently) {
  const std::string whole = encode(some_status());
  const std::string old = write(".1-a.status", whole.substr(0, whole.size() / 2));
  const std::string fresh = write(".2-b.status", whole.substr(0, whole.size() / 2));
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  const StatusListing listed = listing();
  EXPECT_TRUE(listed.processes.empty());
  EXPECT_TRUE(listed.problems.empty());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh)) << "a process is writing it";
}

TEST_F(StatusDirectory, KeepsFilesOfOtherContainers) {
  ProcessStatus status = some_status();
  ++status.started;
  ++status.name_space;
  const std::string path = write("1-a.status", encode(status));
  EXPECT_EQ(listing().processes.size(), 1u);
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(StatusDirectory, IgnoresFilesWritableByOthers) {
  EXPECT_NE(problem_with(encode(some_status()), 0622).find("other users can write to the file"), std::string::npos);
}

TEST_F(StatusDirectory, IgnoresLinksPipesAndOversizedFiles) {
  const std::string real = write("real", encode(some_status()));
  fs::create_symlink(real, directory_.path() + "/1-b.status");
  mkfifo((directory_.path() + "/1-c.status").c_str(), 0600);
  write("1-d.status", std::string(ProcessStatus::kMaxBytes + 1, 'x'));
  const StatusListing listed = listing();
  EXPECT_TRUE(listed.processes.empty());
  EXPECT_EQ(listed.problems.size(), 3u);
}

TEST_F(StatusDirectory, ReportsCorruptFileAndContinues) {
  std::string corrupt = encode(some_status());
  corrupt[40] = static_cast<char>(corrupt[40] ^ 1);
  write("1-b.status", encode(some_status()));
  write("1-a.status", corrupt);
  const StatusListing listed = listing();
  EXPECT_EQ(listed.processes.size(), 1u);
  ASSERT_EQ(listed.problems.size(), 1u);
  EXPECT_NE(listed.problems[0].find("1-a.status is ignored"), std::string::npos);
}

TEST_F(StatusDirectory, DirectoryWritableByOthersIsRejected) {
  fs::permissions(directory_.path(), fs::perms::all);
  const auto listed = read_status_directory(directory_.path());
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, Code::Denied);
}

// A clock on which each wait ends at once, after its whole time. Thread-safe.
class RecordingClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override { return steady(); }
  std::chrono::nanoseconds steady() const override {
    const MutexLock lock(mutex_);
    return now_;
  }
  void sleep(std::chrono::nanoseconds time) const override { advance(time); }
  void wait(Condition&, Mutex& mutex, std::chrono::nanoseconds time) const override KILN_REQUIRES(mutex) {
    advance(time);
  }
  std::vector<std::chrono::nanoseconds> waits() const {
    const MutexLock lock(mutex_);
    return waits_;
  }

 private:
  void advance(std::chrono::nanoseconds time) const {
    const MutexLock lock(mutex_);
    now_ += time;
    waits_.push_back(time);
  }

  mutable Mutex mutex_;
  mutable std::chrono::nanoseconds now_ KILN_GUARDED_BY(mutex_) = std::chrono::hours(1);
  mutable std::vector<std::chrono::nanoseconds> waits_ KILN_GUARDED_BY(mutex_);
};

class Board : public StatusDirectory {
 protected:
  Board() { config_.status_dir = directory_.path() + "/status"; }
  StatusWriter::Params params() {
    return {[this](std::size_t) {
              StatusSnapshot snapshot;
              snapshot.totals.submitted = 2;
              snapshot.totals.pending = pending_;
              return snapshot;
            },
            [this](const Error&) { ++warnings_; }};
  }
  std::vector<ProcessStatus> shown() { return read_status_directory(config_.status_dir).value().processes; }

  Config config_;
  std::atomic<std::size_t> pending_{1};
  std::atomic<int> warnings_{0};
};

TEST_F(Board, WritesNothingBeforeWorkStarts) {
  const StatusWriter board(params());
  EXPECT_FALSE(fs::exists(config_.status_dir));
}

TEST_F(Board, ReportsPendingUnitsUntilNoneIsLeft) {
  StatusWriter board(params());
  board.on_work_started(config_.status_dir);
  ASSERT_TRUE(eventually([&] { return shown().size() == 1 && shown()[0].snapshot.totals.pending == 1; }));
  EXPECT_EQ(shown()[0].pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_FALSE(shown()[0].command.empty());
  pending_ = 0;
  EXPECT_TRUE(eventually([&] { return shown().size() == 1 && shown()[0].snapshot.totals.pending == 0; }));
}

TEST_F(Board, ReportsLessOftenTheLongerTheWorkTakes) {
  RecordingClock clock;
  StatusWriter::Params made = params();
  made.clock = &clock;
  made.snapshot = [&, snapshot = made.snapshot](std::size_t most) {
    if (clock.waits().size() == 40) pending_ = 0;
    return snapshot(most);
  };
  StatusWriter board(std::move(made));
  board.on_work_started(config_.status_dir);
  ASSERT_TRUE(eventually([&] { return shown().size() == 1 && shown()[0].snapshot.totals.pending == 0; }));
  board.stop();
  const std::vector<std::chrono::nanoseconds> waits = clock.waits();
  ASSERT_EQ(waits.size(), 40U);
  EXPECT_EQ(waits.front(), 200ms);
  EXPECT_EQ(waits.back(), 1s);
  EXPECT_TRUE(std::is_sorted(waits.begin(), waits.end()));
}

TEST_F(Board, FileIsPrivateAndRemovedAtEnd) {
  {
    StatusWriter board(params());
    board.on_work_started(config_.status_dir);
    ASSERT_TRUE(eventually([&] { return shown().size() == 1; }));
    for (const auto& file : fs::directory_iterator(config_.status_dir)) {
      EXPECT_EQ(file.status().permissions(), fs::perms::owner_read | fs::perms::owner_write);
    }
  }
  EXPECT_TRUE(fs::is_empty(config_.status_dir));
}

TEST_F(Board, WritesNothingWhenOff) {
  config_.status_dir = "off";
  EXPECT_EQ(status_directory(config_.status_dir), "");
  StatusWriter board(params());
  board.on_work_started(config_.status_dir);
  board.stop();
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(Board, ReportsUnusableDirectoryOnce) {
  fs::create_directory(config_.status_dir);
  fs::permissions(config_.status_dir, fs::perms::all);
  StatusWriter board(params());
  board.on_work_started(config_.status_dir);
  EXPECT_TRUE(eventually([&] { return warnings_ == 1; }));
  board.on_work_started(config_.status_dir);
  board.stop();
  EXPECT_EQ(warnings_, 1);
  EXPECT_TRUE(fs::is_empty(config_.status_dir));
}

}  // namespace
}  // namespace kiln::test
