#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/machine.hpp"
#include "session/status_board.hpp"
#include "session/status_folder.hpp"
#include "support/eventually.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

ProcessStatus some_status() {
  ProcessStatus status;
  status.pid = static_cast<std::uint32_t>(getpid());
  status.started = start_of_process(getpid()).value_or(0);
  status.name_space = process_name_space();
  status.command = "./app --jobs 2";
  status.since = 10s;
  status.written = 12s;
  status.glance.sums.submitted = 3;
  status.glance.sums.compiled = 1;
  status.glance.sums.pending = 1;
  status.glance.sums.failed = 1;
  status.glance.waiters = 2;
  status.glance.units = {
      {{"pip", "cuda", "sm_90", UnitStatus::State::Running, Origin::Compiled, 120.5, ""}, 2},
      {{"bad", "cuda", "sm_90", UnitStatus::State::Failed, Origin::Compiled, 3, "unit 'bad' does not compile"}, 0},
  };
  return status;
}

// With the checksum that its content has, so that what is behind it is looked at.
std::string resealed(std::string file) {
  Writer sum;
  sum.u64(xxh3(as_bytes(std::string_view(file).substr(20))));
  return file.replace(12, 8, sum.bytes());
}

class StatusFolder : public testing::Test {
 protected:
  void SetUp() override { fs::permissions(folder_.path(), fs::perms::owner_all); }
  std::string write(const std::string& name, const std::string& bytes, mode_t mode = 0600) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), mode);
    return path;
  }
  StatusListing listing() { return read_status_folder(folder_.path()).value(); }
  std::string problem_with(const std::string& bytes, mode_t mode = 0600) {
    write("1-a.status", bytes, mode);
    const StatusListing listed = listing();
    EXPECT_TRUE(listed.processes.empty());
    return listed.problems.empty() ? "none" : listed.problems.front();
  }

  TemporaryDirectory folder_;
};

TEST(StatusFormat, IsReadAsItWasWritten) {
  const ProcessStatus status = some_status();
  const auto read = decode_status(encode(status));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(encode(*read), encode(status));
  EXPECT_EQ(read->command, "./app --jobs 2");
  EXPECT_EQ(read->glance.waiters, 2u);
  ASSERT_EQ(read->glance.units.size(), 2u);
  EXPECT_EQ(read->glance.units[0].waiters, 2u);
  EXPECT_EQ(read->glance.units[1].status.error, "unit 'bad' does not compile");
}

TEST(StatusFormat, OfAnotherVersionIsRefusedPolitely) {
  for (const char version : {'\0', '\2'}) {
    std::string file = encode(some_status());
    file[8] = version;
    const auto read = decode_status(file);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::Unsupported);
    EXPECT_NE(read.error().message.find("another version of kiln"), std::string::npos);
  }
}

TEST(StatusFormat, IsRefusedWhereAByteDiffersOrIsMissing) {
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

TEST(StatusFormat, IsBoundedWhateverAProcessHas) {
  ProcessStatus status = some_status();
  status.command = std::string(100'000, 'x');
  const std::string long_name = std::string(255, 'a') + "é" + std::string(1000, 'b');
  status.glance.units.assign(
      1000,
      {{long_name, long_name, long_name, UnitStatus::State::Failed, Origin::Compiled, 1, std::string(4000, 'e')}, 0});
  const std::string file = encode(status);
  EXPECT_LE(file.size(), ProcessStatus::kMostBytes);
  const auto read = decode_status(file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->glance.units.size(), ProcessStatus::kMostUnits);
  EXPECT_EQ(read->glance.units[0].status.unit, std::string(255, 'a')) << "not cut within a letter";
}

TEST_F(StatusFolder, ListsProcessesThatLive) {
  write("1-a.status", encode(some_status()));
  write("notes.txt", "not one of ours");
  const StatusListing listed = listing();
  ASSERT_EQ(listed.processes.size(), 1u);
  EXPECT_EQ(listed.processes[0].pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_TRUE(listed.problems.empty());
}

TEST_F(StatusFolder, ThatIsNotThereHasNothing) {
  const auto listed = read_status_folder(folder_.path() + "/nothing");
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_TRUE(listed->processes.empty());
}

TEST_F(StatusFolder, LosesWhatADeadProcessLeft) {
  ProcessStatus status = some_status();
  ++status.started;  // another process had this id
  const std::string path = write("1-a.status", encode(status));
  EXPECT_TRUE(listing().processes.empty());
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(StatusFolder, LosesWhatWasHalfWrittenWhenItsProcessWasKilledAndSaysNothingOfIt) {
  const std::string whole = encode(some_status());
  const std::string old = write(".1-a.status", whole.substr(0, whole.size() / 2));
  const std::string fresh = write(".2-b.status", whole.substr(0, whole.size() / 2));
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  const StatusListing listed = listing();
  EXPECT_TRUE(listed.processes.empty());
  EXPECT_TRUE(listed.problems.empty());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh)) << "somebody writes it just now";
}

TEST_F(StatusFolder, KeepsWhatAnotherContainerSays) {
  ProcessStatus status = some_status();
  ++status.started;
  ++status.name_space;
  const std::string path = write("1-a.status", encode(status));
  EXPECT_EQ(listing().processes.size(), 1u);
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(StatusFolder, BelievesNoFileThatOthersCanWriteTo) {
  EXPECT_NE(problem_with(encode(some_status()), 0622).find("other users can write to it"), std::string::npos);
}

TEST_F(StatusFolder, BelievesNoLinkNoPipeAndNoGiant) {
  const std::string real = write("real", encode(some_status()));
  fs::create_symlink(real, folder_.path() + "/1-b.status");
  mkfifo((folder_.path() + "/1-c.status").c_str(), 0600);
  write("1-d.status", std::string(ProcessStatus::kMostBytes + 1, 'x'));
  const StatusListing listed = listing();
  EXPECT_TRUE(listed.processes.empty());
  EXPECT_EQ(listed.problems.size(), 3u);
}

TEST_F(StatusFolder, NamesADamagedFileAndGoesOn) {
  std::string damaged = encode(some_status());
  damaged[40] = static_cast<char>(damaged[40] ^ 1);
  write("1-b.status", encode(some_status()));
  write("1-a.status", damaged);
  const StatusListing listed = listing();
  EXPECT_EQ(listed.processes.size(), 1u);
  ASSERT_EQ(listed.problems.size(), 1u);
  EXPECT_NE(listed.problems[0].find("1-a.status is not believed"), std::string::npos);
}

TEST_F(StatusFolder, ThatOthersCanWriteToIsRefused) {
  fs::permissions(folder_.path(), fs::perms::all);
  const auto listed = read_status_folder(folder_.path());
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, Code::Refused);
}

class Board : public StatusFolder {
 protected:
  Board() { config_.status_dir = folder_.path() + "/status"; }
  StatusBoard::Parts parts() {
    return {[this](std::size_t) {
              Glance glance;
              glance.sums.submitted = 2;
              glance.sums.pending = pending_;
              return glance;
            },
            [this](const Error&) { ++complaints_; }};
  }
  std::vector<ProcessStatus> shown() { return read_status_folder(config_.status_dir).value().processes; }

  Config config_;
  std::atomic<std::size_t> pending_{1};
  std::atomic<int> complaints_{0};
};

TEST_F(Board, WritesNothingBeforeThereIsWork) {
  const StatusBoard board(parts());
  EXPECT_FALSE(fs::exists(config_.status_dir));
}

TEST_F(Board, SaysWhatIsPendingAndThatNothingIsAnyMore) {
  StatusBoard board(parts());
  board.touch(config_);
  ASSERT_TRUE(eventually([&] { return shown().size() == 1 && shown()[0].glance.sums.pending == 1; }));
  EXPECT_EQ(shown()[0].pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_FALSE(shown()[0].command.empty());
  pending_ = 0;
  EXPECT_TRUE(eventually([&] { return shown().size() == 1 && shown()[0].glance.sums.pending == 0; }));
}

TEST_F(Board, IsForItsUserAloneAndGoneAtTheEnd) {
  {
    StatusBoard board(parts());
    board.touch(config_);
    ASSERT_TRUE(eventually([&] { return shown().size() == 1; }));
    for (const auto& file : fs::directory_iterator(config_.status_dir)) {
      EXPECT_EQ(file.status().permissions(), fs::perms::owner_read | fs::perms::owner_write);
    }
  }
  EXPECT_TRUE(fs::is_empty(config_.status_dir));
}

TEST_F(Board, ThatIsOffWritesNothing) {
  config_.status_dir = "off";
  EXPECT_EQ(status_folder(config_), "");
  StatusBoard board(parts());
  board.touch(config_);
  board.stop();
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(Board, SaysOnceThatItsFolderCannotBeUsed) {
  fs::create_directory(config_.status_dir);
  fs::permissions(config_.status_dir, fs::perms::all);
  StatusBoard board(parts());
  board.touch(config_);
  EXPECT_TRUE(eventually([&] { return complaints_ == 1; }));
  board.touch(config_);
  board.stop();
  EXPECT_EQ(complaints_, 1);
  EXPECT_TRUE(fs::is_empty(config_.status_dir));
}

}  // namespace
}  // namespace kiln::test
